"""The workflow as its user meets it: targets, reruns, faults, and what is left behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from specmoe.runs.schema import read_runs

from ..processes import alive, eventually
from ..tex import needs_tex

SUITES = ["A", "B", "C", "D", "F", "P"]


def jobs(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Return how many jobs of each rule a dry run lists."""
    assert done.returncode == 0, done.stdout + done.stderr
    table = (done.stdout + done.stderr).partition("Job stats:")[2].partition("\n\n")[0]
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}


def words(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def test_the_default_config_plans_the_study_and_its_paired_baselines(snakemake, tmp_path):
    done = snakemake("-n", "--quiet", "host", folder=tmp_path)
    planned = jobs(done)
    assert planned["measure_block"] == 90
    runs = Counter()
    for suite, count in re.findall(r"Measuring (\w+)/\S+: (\d+) runs", words(done)):
        runs[suite] += int(count)
    assert runs == {"A": 18, "B": 144, "C": 36, "D": 72, "F": 36, "P": 48}
    assert planned["build_engine"] == 1
    assert planned["fetch_model"] == 8


def test_every_suite_is_a_target(snakemake, tmp_path):
    for suite in SUITES:
        assert jobs(snakemake("-n", f"suite_{suite}", folder=tmp_path))[f"suite_{suite}"] == 1


def test_a_suite_takes_its_own_blocks_and_baselines_only(snakemake, tmp_path):
    planned = jobs(snakemake("-n", "suite_D", folder=tmp_path))
    # Two targets, three γ, three repeats; and the two targets' baselines.
    assert planned["measure_block"] == 18 + 6
    assert planned["fetch_model"] == 3


def test_every_target_says_what_it_does(snakemake, tmp_path):
    listed = words(snakemake("--list", folder=tmp_path))
    for target in ["paper", "tables", "figures", "runs", "models", "engine", "suite_B"]:
        assert re.search(rf"^{target} \(.+\)$", listed, re.MULTILINE), listed


@pytest.mark.parametrize("asked", [["-n", "runs"], ["--unlock"], ["help"]])
def test_no_option_is_needed(asked, root, tmp_path):
    command = [sys.executable, "-m", "snakemake", *asked, "--snakefile", str(root / "Snakefile")]
    command += ["--directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, words(done)


def test_help_lists_what_people_type_and_no_step_on_the_way(snakemake, tmp_path):
    told = snakemake("help", folder=tmp_path).stdout
    targets = re.findall(r"^(\w+) +[A-Z].*\.$", told, re.MULTILINE)
    assert {"plan", "paper", "site", "advise", "suite_B", "pack_campaign"} <= set(targets)
    assert not {"collect_runs", "record_config", "measure_block", "claim_paper"} & set(targets)
    assert not (tmp_path / "results/m2-ultra/plan.json").exists()  # asking plans nothing


def test_a_campaign_leaves_rows_tables_figures_and_numbers(measured, root):
    runs = read_runs(measured / "results/tiny/runs.parquet")
    assert len(runs) == 4
    assert set(runs["status"]) == {"ok"}
    speculative = runs[runs["draft"] != "none"]
    assert (speculative["common_prefix"] == 16).all()
    assert (speculative["replays"] > 0).any()
    paper = measured / "paper"
    templates = {path.stem for path in (root / "paper/templates").glob("*.j2")}
    assert {path.name for path in (paper / "tables").iterdir()} == templates
    captions = {path.stem for path in (root / "paper/captions").glob("*.rst")}
    assert {path.stem for path in (paper / "figures").glob("*.p*")} == captions
    assert "\\newcommand" in (paper / "macros.tex").read_text()


def test_a_second_run_does_nothing(measured, tiny, campaign):
    assert "Nothing to be done" in words(campaign(tiny, "paper"))


def test_another_gamma_measures_the_new_block_only(measured, tiny, campaign):
    tiny["suites"]["S"]["gammas"] = [4, 8]
    assert jobs(campaign(tiny, "-n", "runs"))["measure_block"] == 1


def test_more_repeats_measure_the_new_blocks_only(measured, tiny, campaign):
    done = campaign(tiny, "more_repeats")
    assert done.returncode == 0, words(done)
    assert "1 of 1 cells are to be repeated" in words(done)
    # One block gives no spread: the fewest that give one are asked for, and of the baseline too.
    overlay = yaml.safe_load((measured / "results/tiny/more_repeats.yaml").read_text())
    asked = {"N/target/none/g0": 3, "S/target/draft/g4": 3}
    assert overlay == {"measurement": {"more_repeats": asked}}
    tiny["measurement"]["repeats"] = 2
    assert jobs(campaign(tiny, "-n", "runs"))["measure_block"] == 2
    tiny["measurement"] |= {"repeats": 1, "more_repeats": asked}
    assert jobs(campaign(tiny, "-n", "runs"))["measure_block"] == 4
    done = campaign(tiny, "runs")
    assert done.returncode == 0, words(done)
    runs = read_runs(measured / "results/tiny/runs.parquet")
    assert runs.groupby(["suite", "repeat"]).size().to_dict() == {
        (suite, repeat): 2 for suite in ("N", "S") for repeat in range(3)
    }
    assert runs.loc[runs["suite"] == "S", "baseline"].notna().all()
    done = campaign(tiny, "advise")
    assert "How sure: 3 blocks of 2 runs" in " ".join(words(done).split())


def test_advice_on_a_single_block_is_that_nothing_is_known(measured, tiny, campaign):
    for _ in range(2):  # asked again it answers again
        done = campaign(tiny, "advise")
        assert done.returncode == 0, words(done)
        assert "target (target): not known" in words(done)
        assert "in one block, without an interval" in " ".join(words(done).split())
    advice = json.loads((measured / "results/tiny/advice.json").read_text())
    answers = {row["target"]: row["answer"] for row in advice["targets"]}
    assert answers == {"target": "not known"}


def test_a_block_is_one_line_that_says_how_far_the_campaign_is(tiny, campaign):
    told = campaign(tiny, "runs").stdout.splitlines()
    of_blocks = [line for line in told if " of 2 blocks" in line]
    assert re.fullmatch(
        r"1 of 2 blocks, \d+ \w+ left: [NS]/target/\w+/g\d/r0: [\d.]+ tok/s(, acceptance \d+%)?",
        of_blocks[0],
    )
    assert re.fullmatch(r"2 of 2 blocks: [NS]/target/.+ tok/s.*", of_blocks[1])
    assert not [line for line in told if line.startswith("run ")]


def test_an_added_prompt_is_told_before_anything_is_measured_again(measured, tiny, campaign):
    for suite in "NS":
        tiny["suites"][suite]["prompts"] = ["code", "short_factual"]
    told = campaign(tiny, "runs").stdout
    plan, _, progress = told.partition("Assumed:")
    for suite in "NS":
        again = rf"Measured again: 1 blocks of suite {suite} \(\d+ s by estimate\): prompt added:"
        assert re.search(rf"^{again} short_factual$", plan, re.MULTILINE), plan
    assert "1 of 2 blocks" in progress


HOSTILE_EXPORT = {"LLAMA_ARG_SPEC_TYPE": "ngram-simple", "OMP_NUM_THREADS": "7"}


def test_exported_variables_that_steer_the_engine_stop_the_workflow_first(tiny, campaign, tmp_path):
    done = campaign(tiny, "runs", env=os.environ | HOSTILE_EXPORT)
    assert done.returncode != 0
    assert "LLAMA_ARG_SPEC_TYPE, OMP_NUM_THREADS would set up the engine" in words(done)
    assert "Traceback" not in words(done)
    assert not list(tmp_path.rglob("engine.json"))


def test_what_is_measured_is_rendered_whatever_is_exported(measured, tiny, campaign):
    shutil.rmtree(measured / "results/tiny/audit")
    done = campaign(tiny, "paper", env=os.environ | HOSTILE_EXPORT)
    assert done.returncode == 0, words(done)


def test_a_changed_time_limit_makes_nothing_stale(measured, tiny, campaign):
    tiny["measurement"]["run_limit_s"] = 77
    assert "measure_block" not in jobs(campaign(tiny, "-n", "runs"))


def test_a_changed_measurement_makes_every_block_stale(measured, tiny, campaign):
    tiny["measurement"]["n_predict"] = 17
    assert jobs(campaign(tiny, "-n", "runs"))["measure_block"] == 2


@pytest.fixture
def other_engine(engine_bin, tmp_path) -> Path:
    """A folder with binaries that are not those of the engine."""
    folder = shutil.copytree(engine_bin, tmp_path / "other_engine")
    with (folder / "llama-bench").open("ab") as file:
        file.write(b"other")
    return folder


def in_another_folder(config: dict[str, Any], folder: Path, **campaign: str) -> dict[str, Any]:
    """Return a configuration with its engine in another folder, under the same name."""
    return config | {
        "campaign": config["campaign"] | campaign,
        "engines": {"built": {"source": "path", "path": str(folder)}},
    }


def test_another_engine_of_the_same_name_leaves_a_finished_campaign_as_it_is(
    measured, tiny, campaign, other_engine
):
    second = in_another_folder(tiny, other_engine, name="second")
    assert jobs(campaign(second, "-n", "runs"))["measure_block"] == 2
    done = campaign(second, "runs")
    assert done.returncode == 0, words(done)
    assert "Nothing to be done" in words(campaign(tiny, "-n", "paper"))
    assert "Nothing to be done" in words(campaign(second, "-n", "runs"))
    engines = {
        name: set(read_runs(measured / f"results/{name}/runs.parquet")["engine"])
        for name in ("tiny", "second")
    }
    assert [len(ids) for ids in engines.values()] == [1, 1]
    assert engines["tiny"] != engines["second"]
    folders = {path.name for path in (measured / "results/engines").iterdir() if path.is_dir()}
    assert folders == engines["tiny"] | engines["second"]


def test_the_same_binaries_in_another_folder_measure_nothing_again(
    measured, tiny, campaign, engine_bin, tmp_path
):
    moved = in_another_folder(tiny, shutil.copytree(engine_bin, tmp_path / "moved"))
    planned = jobs(campaign(moved, "-n", "runs"))
    assert not {"build_engine", "measure_block"} & planned.keys()


def test_binaries_that_changed_are_another_engine(measured, tiny, campaign, other_engine):
    planned = jobs(campaign(in_another_folder(tiny, other_engine), "-n", "runs"))
    assert (planned["build_engine"], planned["measure_block"]) == (1, 2)


def test_a_finished_campaign_whose_binaries_are_gone_is_still_rendered(
    measured, tiny, campaign, engine_bin, tmp_path
):
    folder = shutil.copytree(engine_bin, tmp_path / "moved", copy_function=shutil.copy2)
    moved = in_another_folder(tiny, folder)
    assert campaign(moved, "runs").returncode == 0
    shutil.rmtree(folder)
    assert "measure_block" not in jobs(campaign(moved, "-n", "--forcerun", "collect_runs", "runs"))


def test_a_folder_that_holds_no_engine_is_named_when_the_engine_is_needed(tiny, campaign, tmp_path):
    missing = in_another_folder(tiny, tmp_path / "missing")
    assert jobs(campaign(missing, "-n", "engine"))["build_engine"] == 1
    done = campaign(missing, "engine")
    assert done.returncode != 0
    assert f"EngineError: no llama-server in {tmp_path / 'missing'}; give the folder" in words(done)


def test_a_quantized_model_stays_when_another_engine_uses_it(
    tiny, campaign, other_engine, tmp_path
):
    quantized = {"kind": "quantize", "source": "target", "type": "Q8_0"}
    tiny["model_sets"]["tiny"]["quantized"] = quantized
    for suite in tiny["suites"].values():
        suite["targets"] = ["quantized"]
    done = campaign(tiny, "models")
    assert done.returncode == 0, words(done)
    made = (tmp_path / "results/models/tiny/quantized.gguf").stat().st_mtime_ns
    second = in_another_folder(tiny, other_engine, name="second")
    done = campaign(second, "models", "engine")
    assert done.returncode == 0, words(done)
    assert "Nothing to be done" in words(campaign(tiny, "-n", "models", "engine"))
    assert (tmp_path / "results/models/tiny/quantized.gguf").stat().st_mtime_ns == made


def test_a_suite_prints_its_summary_whenever_it_is_asked(measured, tiny, campaign):
    for _ in range(2):
        done = campaign(tiny, "suite_S")
        assert done.returncode == 0, words(done)
        assert words(done).count("Suite S: Speculative, 2 runs") == 1
    assert "acceptance %" in (measured / "results/tiny/suites/S.txt").read_text()


def test_the_same_rows_render_to_the_same_bytes(measured, tiny, campaign):
    paper = measured / "paper"
    before = {path: path.read_bytes() for path in paper.rglob("*") if path.is_file()}
    shutil.rmtree(paper)
    assert campaign(tiny, "paper").returncode == 0
    assert before == {path: path.read_bytes() for path in before}


def test_blocks_are_measured_one_at_a_time_whatever_the_cores(tiny, campaign, tmp_path):
    tiny["measurement"]["repeats"] = 3
    done = campaign(tiny, "--cores", "8", "runs")
    assert done.returncode == 0, words(done)
    runs = read_runs(tmp_path / "results/tiny/runs.parquet")
    spans = runs.assign(
        end=runs["started_at"] + pd.to_timedelta(runs["prompt_ms"] + runs["decode_ms"], unit="ms")
    )
    spans = spans.groupby("block").agg(start=("started_at", "min"), end=("end", "max"))
    spans = spans.sort_values("start")
    assert len(spans) == 6
    assert all(one.end <= next_.start for one, next_ in pairwise(spans.itertuples()))


def test_a_failed_block_leaves_the_others_and_is_named_at_the_end(tiny, campaign, tmp_path):
    tiny["measurement"]["context"] = 272  # more than `code` takes, less than `long_reasoning`
    tiny["suites"]["L"] = tiny["suites"]["N"] | {"prompts": ["long_reasoning"]}
    tiny["campaign"]["suites"] = ["S", "N", "L"]
    done = campaign(tiny, "--keep-going", "paper")
    assert done.returncode != 0
    assert "MeasurementError: prompt long_reasoning has" in words(done)
    assert "1 of 3 blocks are not measured" in words(done)
    assert "L/target/none/g0/r0: see results/tiny/logs/measure_block/L/" in words(done)
    blocks = tmp_path / "results/tiny/blocks"
    assert len(list(blocks.rglob("*.json"))) == 2
    assert not (tmp_path / "paper").exists()


def test_a_draft_of_another_vocabulary_is_found_before_anything_is_measured(
    tiny, campaign, tmp_path
):
    other = tiny["model_sets"]["tiny"]["draft"]["recipe"] | {"vocabulary": 1024}
    tiny["model_sets"]["tiny"]["stranger"] = {"kind": "synthetic", "recipe": other}
    tiny["suites"]["S"]["drafts"] = ["draft", "stranger"]
    done = campaign(tiny, "runs")
    assert done.returncode != 0
    assert "stranger.gguf cannot draft for results/models/tiny/target.gguf" in words(done)
    assert "choose a draft of the target's own family" in words(done)
    assert "3 of 3 blocks are not measured" in words(done)
    assert not (tmp_path / "results/tiny/blocks").exists()


def test_a_missing_model_file_is_in_the_plan(tiny, campaign, tmp_path):
    tiny["model_sets"]["tiny"]["target"] = {"kind": "path", "path": "~/no such file.gguf"}
    told = words(campaign(tiny, "plan"))
    home = Path.home()
    assert f"model target: no file {home}/no such file.gguf; correct its path" in told


def test_another_campaign_keeps_what_the_one_before_rendered(measured, tiny, campaign):
    before = {path: path.read_bytes() for path in (measured / "paper/tables").iterdir()}
    shutil.copytree(measured / "results/tiny", measured / "results/other")
    tiny["campaign"]["name"] = "other"
    done = campaign(tiny, "tables")
    assert done.returncode == 0, words(done)
    told = "paper/ now holds campaign other; what was rendered there of campaign tiny is kept in"
    assert f"{told} results/tiny/paper" in words(done)
    kept = measured / "results/tiny/paper/tables"
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {
        path.name: content for path, content in before.items()
    }


def test_a_campaign_is_packed_without_a_demonstration_that_is_not_made(measured, tiny, campaign):
    done = campaign(tiny, "pack_campaign")
    assert done.returncode == 0, words(done)
    assert not (measured / "results/tiny/cached/trace.json").exists()
    assert (measured / "results/tiny/cached/runs.parquet").exists()


def test_another_machine_goes_on_with_no_campaign_that_this_one_began(measured, tiny, campaign):
    path = measured / "results/tiny/hosts/r0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id": "0" * 12, "chip": "Other"}))
    tiny["suites"]["S"]["gammas"] = [4, 8]
    done = campaign(tiny, "runs")
    assert done.returncode != 0
    assert "this campaign was begun on another machine (Other, 000000000000)" in words(done)
    assert not (measured / "results/tiny/blocks/S/target/draft/g8/r0.json").exists()


def test_rows_of_two_machines_make_no_table(measured, tiny, campaign):
    path = measured / "results/tiny/blocks/N/target/none/g0/r0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "0" * 12}))
    done = campaign(tiny, "runs", "--forcerun", "collect_runs")
    assert done.returncode != 0
    assert "this campaign has rows of 2 machines: 000000000000 (for one N/target/" in words(done)


def test_the_plan_is_printed_first_and_with_what_was_measured_afterwards(measured, tiny, campaign):
    done = campaign(tiny, "plan")
    assert done.returncode == 0, words(done)
    assert re.search(r"^ +all +2 +4 .*\(estimated: \d+ s\)$", words(done), re.MULTILINE)
    tiny["suites"]["S"]["gammas"] = [4, 8]
    first = campaign(tiny, "runs").stdout.splitlines()[0]
    assert first == "Campaign tiny: 6 runs in 3 blocks"


def test_nothing_is_downloaded_that_does_not_fit(tiny, campaign, tmp_path):
    tiny["model_sets"]["tiny"]["target"] = {
        "kind": "hub",
        "repository": "some/where",
        "file": "large.gguf",
        "size_bytes": 10**18,
    }
    done = campaign(tiny, "models", env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert done.returncode != 0
    assert "PlanError: nothing is downloaded: this campaign cannot be measured here" in words(done)
    assert "disk: 1000000000.0 GB needed" in words(done)
    assert "--configfile config/demo.yaml" in words(done)


def test_the_example_of_own_models_is_a_campaign_of_two_suites(snakemake, tmp_path, root):
    example = str(root / "config/my-models.example.yaml")
    planned = jobs(snakemake("-n", "paper", "--configfile", example, folder=tmp_path))
    assert planned["measure_block"] == 9 + 3
    assert (planned["link_model"], planned["fetch_model"], planned["check_pair"]) == (1, 1, 1)


def test_the_study_on_the_types_of_its_paper_quantizes_six_models(snakemake, tmp_path, root):
    types = str(root / "config/study-types.yaml")
    planned = jobs(snakemake("-n", "paper", "--configfile", types, folder=tmp_path))
    assert (planned["fetch_model"], planned["quantize_model"]) == (5, 6)
    assert planned["measure_block"] == 90


def test_the_artefact_is_one_campaign_of_two_engines(snakemake, tmp_path, root):
    artefact = str(root / "config/artefact.yaml")
    planned = jobs(snakemake("-n", "paper", "--configfile", artefact, folder=tmp_path))
    # Of every way three targets, each without a draft and with one at three γ, twice.
    assert planned["measure_block"] == 3 * 3 * 4 * 2
    assert (planned["build_engine"], planned["judge_divergences"]) == (2, 3)
    only_tools = jobs(
        snakemake("-n", "suite_march_tools", "--configfile", artefact, folder=tmp_path)
    )
    assert only_tools["measure_block"] == 24


def test_suites_by_the_studys_commands_and_by_the_server_lie_side_by_side(measured, tiny, campaign):
    tools = {
        "drafts": ["none", "draft"],
        "prompts": [],
        "protocol": "published",
        "baseline": "tools",
    }
    tiny["suites"]["tools"] = tiny["suites"]["S"] | tools
    tiny["campaign"]["suites"].append("tools")
    assert jobs(campaign(tiny, "-n", "paper"))["measure_block"] == 2
    done = campaign(tiny, "paper")
    assert done.returncode == 0, words(done)
    rates = read_runs(measured / "results/tiny/runs.parquet").set_index("suite")
    assert set(rates.loc["tools", "protocol"]) == {"published"}
    assert set(rates.loc[["S", "N"], "protocol"]) == {"paired"}
    [alone] = rates[rates["draft"] == "none"].loc[["tools"], "tokens_per_second"]
    audit = pd.read_parquet(measured / "results/tiny/audit/audit.parquet")
    [why] = audit.query("check == 'draft_time' and suite == 'tools' and draft == 'draft'")["why"]
    assert f"at {1000 / alone:.2f} ms (target alone)" in why
    table = (measured / "paper/tables/protocols.tex").read_text()
    assert "the study's commands, built-cpu" in table
    assert "llama-server, built-cpu" in table


def test_a_wrong_config_is_one_line_and_no_traceback(tiny, campaign, tmp_path):
    tiny["suites"]["S"]["targets"] = ["tagret"]
    done = campaign(tiny, "-n")
    assert done.returncode == 1
    assert "suites.S.targets: unknown model 'tagret'; did you mean 'target'?" in words(done)
    assert "Traceback" not in words(done)
    assert not (tmp_path / "results").exists()


@needs_tex
def test_a_label_full_of_tex_is_printed_as_it_is(measured, tiny, campaign):
    label = r"\input{/etc/passwd} %&#_$ <script>"
    tiny["model_sets"]["tiny"]["target"]["label"] = label
    done = campaign(tiny, "pdf")
    assert done.returncode == 0, words(done)
    printed = subprocess.run(
        ["pdftotext", "-layout", str(measured / "paper/main.pdf"), "-"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert label in printed
    assert "root:" not in printed


def test_without_tex_all_else_is_made_and_the_way_to_it_told(measured, tiny, campaign, tmp_path):
    found = {tool: shutil.which(tool) for tool in ("bash", "tee", "uname", "g++", "cc")}
    for tool, path in found.items():
        if path:
            (tmp_path / "bin").mkdir(exist_ok=True)
            (tmp_path / "bin" / tool).symlink_to(path)
    shutil.rmtree(measured / "paper")
    done = campaign(tiny, "paper", env=os.environ | {"PATH": str(tmp_path / "bin")})
    assert done.returncode == 0, words(done)
    assert "paper/main.pdf is not made without latexmk: on Debian or Ubuntu `apt-get" in words(done)
    assert (measured / "paper/tables/speculation.tex").exists()
    assert not (measured / "paper/main.pdf").exists()


def test_a_path_full_of_shell_is_a_path(measured, tiny, campaign, tmp_path):
    hostile = tmp_path / "a b $(touch pwned) '; touch pwned #.gguf"
    shutil.copy(measured / "results/models/tiny/draft.gguf", hostile)
    tiny["model_sets"]["tiny"]["hostile"] = {"kind": "path", "path": str(hostile)}
    done = campaign(tiny, "results/models/tiny/hostile.json")
    assert done.returncode == 0, words(done)
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a readable GGUF file (empty)"),
        (b"PK\x03\x04 not a model", "not a readable GGUF file"),
        (None, "truncated"),
    ],
)
def test_a_broken_model_file_is_named(measured, tiny, campaign, tmp_path, content, message):
    broken = tmp_path / "broken.gguf"
    whole = (measured / "results/models/tiny/draft.gguf").read_bytes()
    broken.write_bytes(whole[:-100] if content is None else content)
    tiny["model_sets"]["tiny"]["broken"] = {"kind": "path", "path": str(broken)}
    done = campaign(tiny, "results/models/tiny/broken.json")
    assert done.returncode != 0
    assert re.search(rf"ModelError: .*broken\.gguf: {re.escape(message)}", words(done))
    assert "Traceback" not in words(done)


def test_a_damaged_table_of_runs_is_refused_by_name(measured, tiny, campaign):
    path = measured / "results/tiny/runs.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    done = campaign(tiny, "paper", "--forcerun", "analyse_runs")
    assert done.returncode != 0
    assert "SchemaError: results/tiny/runs.parquet is not a readable parquet file" in words(done)


needs_proc = pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")


@needs_proc
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_no_server_outlives_a_killed_workflow_and_the_next_run_goes_on(
    tiny, campaign, tmp_path, root, blow
):
    assert campaign(tiny, "models", "engine").returncode == 0
    long = yaml.safe_load(yaml.safe_dump(tiny))
    long["measurement"] |= {"n_predict": 8000, "context": 9000}
    for recipe in long["model_sets"]["tiny"].values():
        recipe["recipe"]["context_length"] = 16000
    (tmp_path / "long.yaml").write_text(yaml.safe_dump(long))
    command = [sys.executable, "-m", "snakemake", "runs", "--cores", "2"]
    command += ["--snakefile", str(root / "Snakefile"), "--directory", str(tmp_path)]
    command += ["--configfile", str(tmp_path / "long.yaml")]
    with (tmp_path / "out").open("w") as out:
        workflow = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    server = eventually(lambda: server_of(tmp_path))
    if blow == signal.SIGINT:
        os.killpg(workflow.pid, blow)  # Ctrl-C reaches everything in the terminal
    else:
        workflow.send_signal(blow)
    workflow.wait()
    assert eventually(lambda: not alive(server))
    if blow == signal.SIGKILL:
        assert campaign(tiny, "--unlock").returncode == 0
    done = campaign(tiny, "--rerun-incomplete", "runs")
    assert done.returncode == 0, words(done)
    assert len(read_runs(tmp_path / "results/tiny/runs.parquet")) == 4


def server_of(folder: Path) -> int:
    """Return the llama-server that works in a folder, 0 if there is none."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                name = (process / "comm").read_text().strip()
                works_in = (process / "cwd").resolve()
            except OSError:
                continue
            if name == "llama-server" and works_in == folder:
                return int(process.name)
    return 0
