"""The workflow as its user sees it: targets, reruns, faults and results."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pandas as pd
import psutil
import pytest
import yaml

from specmoe.hardware.machine import FOLDER_OF_TESTS, measuring_lock
from specmoe.models.synthetic import write_model
from specmoe.runs.schema import read_runs

from ..conftest import linked, verb
from ..processes import alive, eventually
from ..recipes import TINY, varied

LIMIT_S = 60  # for an interrupted workflow to end
HOSTILE_EXPORT = {"LLAMA_ARG_SPEC_TYPE": "ngram-simple", "OMP_NUM_THREADS": "7"}


def jobs(printed: str) -> dict[str, int]:
    """Return how many jobs of each rule a dry run lists."""
    table = printed.partition("Job stats:")[2].partition("\n\n")[0]
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}


def test_a_suite_needs_only_its_own_blocks_and_no_option(root, tmp_path):
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
    command += ["--directory", str(tmp_path)]
    plan = [*command, "-np", "suite_dense_speculative", "--quiet", "host"]
    done = subprocess.run(plan, check=True, capture_output=True, text=True)
    planned = jobs(done.stdout + done.stderr)
    # Two targets, one draft, four prompts, three repeats.
    assert planned["measure_block"] == 24
    assert planned["fetch_model"] == 3
    # As workflow/README.md says, each job's command is printed, to paste.
    assert re.search(r"python \S+/specmoe measure --campaign \S+ .*--block \S+", done.stdout)
    subprocess.run([*command, "--unlock"], check=True)


def test_help_lists_the_targets_that_people_type_and_no_intermediate_step(snakemake, tmp_path):
    printed = snakemake("help", folder=tmp_path)
    targets = {*re.findall(r"^(\w+) +[A-Z].*\.$", printed, re.MULTILINE)}
    assert {"plan", "paper", "tables", "runs", "page", "advise", "suite_moe_baseline"} <= targets
    assert not {"collect_table", "measure_block", "fill_paper"} & targets
    assert not list(tmp_path.glob("results/m2-ultra/*.json"))  # help plans and records nothing


def test_a_campaign_makes_rows_tables_figures_and_numbers(finished, root):
    runs = read_runs(finished / "results/tiny/runs.parquet")
    assert len(runs) == 6
    speculative = runs[runs["draft"] != "none"]
    assert (speculative["common_prefix"] == 16).all()
    assert (speculative["replays"] > 0).any()
    paper = finished / "paper"
    tables = yaml.safe_load((root / "paper/tables.yaml").read_text())["tables"]
    made = {path.stem for path in (paper / "tables").glob("*.tex")}
    assert {"models", "speculation"} <= made <= set(tables)
    documents = "".join((paper / f"{name}.tex").read_text() for name in ("main", "supplement"))
    shown = re.findall(r"\\floatfigure\{(\w+)\}", documents)
    assert {path.stem for path in paper.glob("figures/*.pdf")} == set(shown) != set()
    assert "of campaign tiny" in documents


def test_advice_and_a_suites_summary_are_printed_at_every_call_and_more_repeats_add_blocks(
    measured, tiny, campaign
):
    # Rendering starts no engine, so what is exported does not matter.
    printed = campaign(tiny, "advise", "suite_S", env=os.environ | HOSTILE_EXPORT)
    assert re.search("^target +not known ", printed, re.MULTILINE)
    assert "\ntarget: every setting was measured once, so no interval is known\n" in printed
    assert printed.count("Suite S: Speculative, 4 runs") == 1
    advice = json.loads((measured / "results/tiny/advice.json").read_text())
    assert {row["target"]: row["answer"] for row in advice["targets"]} == {"target": "not known"}
    tiny["measurement"]["repeats"] = 3
    printed = campaign(tiny, "advise", "suite_S")
    assert jobs(printed)["measure_block"] == 4
    assert printed.count("Suite S: Speculative, 12 runs") == 1
    advised = (measured / "results/tiny/advice.md").read_text()
    assert re.search("Measured: 3 blocks, [3-6] runs", advised)  # other load may lose some
    runs = read_runs(measured / "results/tiny/runs.parquet")
    assert runs.groupby(["suite", "repeat"]).size().to_dict() == {
        (suite, repeat): runs for suite, runs in (("N", 2), ("S", 4)) for repeat in range(3)
    }
    assert runs.loc[runs["draft"] == "draft", "baseline"].notna().all()


def test_the_end_says_what_was_measured_and_where_the_results_are(finished):
    printed = (finished / "printed.txt").read_text().splitlines()
    assert len([line for line in printed if " of 2 blocks" in line]) == 2
    assert not [line for line in printed if "when the DAG was created" in line]
    [ended] = [line for line in printed if line.startswith("6 runs measured in ")]
    audit, results = printed[printed.index(ended) + 1 :][:2]
    assert audit.startswith("audit of tiny: 6 runs, ")
    assert results.startswith("results: paper/main.")


def test_the_same_binaries_elsewhere_measure_nothing_again_and_rendering_needs_none(
    measured, tiny, campaign, engine_bin, tmp_path
):
    folder = shutil.copytree(engine_bin, tmp_path / "moved", copy_function=linked)
    moved = tiny | {"engines": {"built": {"source": "path", "path": str(folder)}}}
    assert not {"build_engine", "measure_block"} & jobs(campaign(moved, "runs")).keys()
    shutil.rmtree(folder)
    assert "measure_block" not in jobs(campaign(moved, "-n", "--forcerun", "collect_table", "runs"))


def test_blocks_are_measured_one_at_a_time_whatever_the_cores(measured, tiny, campaign, tmp_path):
    tiny["measurement"]["repeats"] = 2
    printed = campaign(tiny, "--cores", "8", "runs", "--verbose")
    # Snakemake looks for jobs at the start and when one ends, and sleeps meanwhile.
    [steps] = re.findall(r"(\d+) of \1 steps", printed)
    assert 0 < printed.count("Resources before job selection") <= int(steps) + 1
    runs = read_runs(tmp_path / "results/tiny/runs.parquet")
    spans = runs.assign(
        end=runs["started_at"] + pd.to_timedelta(runs["prompt_ms"] + runs["decode_ms"], unit="ms")
    )
    spans = spans.groupby("block").agg(start=("started_at", "min"), end=("end", "max"))
    spans = spans.sort_values("start")
    assert len(spans) == 4
    assert all(one.end <= next_.start for one, next_ in pairwise(spans.itertuples()))


def test_a_block_waits_for_a_measurement_of_any_user(measured, tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_OF_TESTS, str(tmp_path))
    (measured / "results/tiny/blocks/S/target/r0.jsonl").resolve().unlink()
    asked = ["--campaign", "results/tiny/campaign.json", "--block", "S/target/r0"]
    with measuring_lock():
        waiting = subprocess.Popen(
            verb("measure", *asked), cwd=measured, stdout=subprocess.PIPE, text=True
        )
        assert "waiting for another measurement" in waiting.stdout.readline()
    assert "2 of 2 blocks: S/target/r0" in waiting.communicate()[0]


def test_a_failed_block_is_named_and_what_is_excluded_on_purpose_is_said(
    measured, tiny, campaign, tmp_path
):
    # Longer than the context, as only its tokens show.
    (tmp_path / "long.txt").write_text("word " * 400)
    tiny["prompts"] = {"texts": {"long": {"file": str(tmp_path / "long.txt")}}}
    tiny["suites"]["long"] = tiny["suites"]["N"] | {"prompts": ["long"]}
    tiny["suites"]["N"]["targets"] = ["target", "draft"]
    tiny["campaign"]["suites"] = ["S", "N", "long"]
    printed = campaign(tiny, "--keep-going", "paper", fails=True)
    assert "MeasurementError: prompt long has" in printed
    assert "Not measured: 1 of 4 blocks" in printed
    assert "long/target/r0: see results/tiny/logs/measure_block/long/" in printed
    assert jobs(printed)["measure_block"] == 2
    assert len(list((measured / "results/tiny/blocks").rglob("*.jsonl"))) == 3
    assert "To render the others without what fails, name it in campaign.exclude" in printed
    tiny["campaign"] |= {"suites": ["S", "N"], "exclude": ["N/draft"]}
    printed = campaign(tiny, "results/tiny/analysis")
    assert "measure_block" not in jobs(printed)
    audit = (measured / "results/tiny/audit/audit.txt").read_text()
    assert "2 rows excluded by the configuration: N/draft/r0" in audit
    runs = read_runs(measured / "results/tiny/runs.parquet")
    assert set(runs["suite"] + runs["target"]) == {"Starget", "Ntarget"}
    told = pd.read_parquet(measured / "results/tiny/analysis/campaign.parquet").iloc[0]
    assert (told["excluded_runs"], told["excluded"]) == (2, "N/draft")


def test_nothing_is_downloaded_that_does_not_fit(tiny, campaign, tmp_path):
    large = {"kind": "hub", "repository": "some/where", "file": "a.gguf", "size_bytes": 10**18}
    tiny["model_sets"]["tiny"]["target"] = large
    printed = campaign(tiny, "models", env=os.environ | {"HF_HUB_OFFLINE": "1"}, fails=True)
    assert "PlanError: nothing is downloaded, because this campaign does not fit" in printed
    assert "disk      1000000000.0 GB needed" in printed
    assert "/config/synthetic.yaml\n" in printed
    assert not (tmp_path / "results/models").exists()


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        ("my-models.example", {"measure_until_decided": 1, "make_model": 1}),
        # Five targets, three prompts, five repeats.
        ("methods", {"measure_block": 5 * 3 * 5, "make_model": 17}),
        # Two suites of the study's commands and one of two prompts, three targets, ten repeats.
        ("artefact", {"measure_block": 4 * 3 * 10, "build_engine": 2, "judge_divergences": 3}),
    ],
)
def test_a_shipped_configuration_plans_its_jobs(snakemake, tmp_path, root, overlay, expected):
    file = str(root / f"config/{overlay}.yaml")
    planned = jobs(snakemake("-n", "paper", "--configfile", file, folder=tmp_path))
    assert expected.items() <= planned.items()


def test_ones_own_models_are_named_in_a_line_whatever_their_folder_is_called(snakemake, tmp_path):
    own = tmp_path / "it's {mine} «模型» $(touch pwned)"
    own.mkdir()
    for name, layers in (("my target", 8), ("d", 4)):
        write_model(own / f"{name}.gguf", varied(TINY, layers=layers, chat=True))
    words = [f"target={own}/my target.gguf", f"draft={own}/d.gguf", "minutes=5"]
    snakemake("models", "--config", *words, folder=tmp_path)
    made = {
        file.name: file.resolve() for file in tmp_path.glob("results/models/my-target-*/*.gguf")
    }
    assert made == {"target.gguf": own / "my target.gguf", "draft.gguf": own / "d.gguf"}
    assert not [*tmp_path.rglob("pwned")]


def test_without_tex_everything_else_is_made_and_a_line_says_how_to_install_it(
    measured, tiny, campaign, tmp_path
):
    found = {tool: shutil.which(tool) for tool in ("bash", "cp", "tee", "uname", "g++", "cc")}
    for tool, path in found.items():
        if path:
            (tmp_path / "bin").mkdir(exist_ok=True)
            (tmp_path / "bin" / tool).symlink_to(path)
    shutil.rmtree(measured / "paper/tables")
    printed = campaign(tiny, "paper", env=os.environ | {"PATH": str(tmp_path / "bin")})
    assert "paper/main.pdf is not made without latexmk: on Debian or Ubuntu `apt-get" in printed
    assert (measured / "paper/tables/speculation.tex").exists()
    assert not (measured / "paper/main.pdf").exists()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_no_server_outlives_its_workflow_and_the_next_call_goes_on(
    ending, tiny, campaign, tmp_path, root
):
    """Ctrl-C, which reaches all processes, or a signal to the workflow alone."""
    long = tiny | {"measurement": tiny["measurement"] | {"n_predict": 3500, "context": 4096}}
    (tmp_path / "long.yaml").write_text(yaml.safe_dump(long))
    command = [sys.executable, "-m", "snakemake", "runs", "--cores", "2"]
    command += ["--snakefile", str(root / "Snakefile"), "--directory", str(tmp_path)]
    command += ["--configfile", str(tmp_path / "long.yaml")]
    with (tmp_path / "out").open("w") as out:
        workflow = subprocess.Popen(command, stdout=out, stderr=out)
    server = eventually(lambda: server_of(tmp_path), 300)
    workflow.send_signal(ending)
    workflow.send_signal(ending)
    workflow.wait(LIMIT_S)
    assert eventually(lambda: not alive(server))
    printed = (tmp_path / "out").read_text()
    assert "Traceback" not in printed
    assert "Interrupted. Not measured: 2 of 2 blocks." in printed or ending == signal.SIGKILL
    campaign(tiny, "results/tiny/blocks/N/target/r0.jsonl")


def server_of(folder: Path) -> int:
    """Return the llama-server that serves in a folder, 0 if there is none.

    One that the plan asks for its options serves nobody: who interrupts then has no jobs yet.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            serves = process.name() == "llama-server" and "--model" in process.cmdline()
            if serves and Path(process.cwd()) == folder:
                return process.pid
    return 0
