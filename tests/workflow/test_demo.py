"""The demo at two repeats: the study's matrix on a real engine, and what every row obeys."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from specmoe.paper.pdf import complaints
from specmoe.runs.schema import read_runs

from ..tex import needs_tex
from .conftest import pages, untimed_verdicts

REPEATS = 2
STUDY = {"A": 12, "B": 96, "C": 24, "D": 48, "F": 24, "P": 32}
# Of two targets and two prompts: without a draft, the target itself, an unrelated one.
CONTROLS = {"K": 24}
SOUND = {
    **{(check, "pass"): 260 for check in ("accounting", "determinism", "failed_decodes")},
    ("losslessness", "not applicable"): 88,  # runs without a draft
    ("losslessness", "pass"): 172,
}


@pytest.fixture(scope="module")
def demo_folder(snakemake, engine_bin, root, tmp_path_factory) -> Path:
    """The demo's results and paper, measured on the engine the other tests use."""
    folder = tmp_path_factory.mktemp("demo")
    overlay = {
        "campaign": {"engine": "built"},
        "engines": {"built": {"source": "path", "path": str(engine_bin)}},
        "measurement": {"repeats": REPEATS},
    }
    (folder / "engine.yaml").write_text(yaml.safe_dump(overlay))
    files = [str(root / "config/demo.yaml"), str(folder / "engine.yaml")]
    done = snakemake("paper", "--configfile", *files, folder=folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return folder


@pytest.fixture(scope="module")
def runs(demo_folder) -> pd.DataFrame:
    return read_runs(demo_folder / "results/demo/runs.parquet")


@pytest.fixture(scope="module")
def speculative(runs) -> pd.DataFrame:
    return runs[runs["draft"] != "none"]


def test_all_runs_of_the_study_and_the_controls_are_measured(runs):
    assert runs["suite"].value_counts().to_dict() == STUDY | CONTROLS
    assert (runs["status"] == "ok").all()
    assert (runs["decode_failures"] == 0).all()
    assert all(len(tokens) == 64 for tokens in runs["tokens"])


def test_every_speculative_run_has_its_baseline_and_their_common_prefix(runs, speculative):
    baselines = runs.set_index("run").loc[speculative["baseline"]].reset_index()
    for column in ("target", "prompt", "repeat", "n_prompt"):
        assert (baselines[column].to_numpy() == speculative[column].to_numpy()).all()
    assert speculative["common_prefix"].between(0, 64).all()
    unquantized = speculative[speculative["target"] == "dense_9b"]
    assert (unquantized["common_prefix"] == 64).all()


def test_every_row_obeys_the_engines_arithmetic(runs, speculative):
    plain = runs[runs["draft"] == "none"]
    assert (plain["decodes"] == plain["n_predict"]).all()
    # The prompt's pass gives the first token; every later pass gives one and what it accepted.
    passes = speculative["decodes"] - 1
    given = speculative["n_predict"] - 1 - speculative["accepted"]
    assert (passes == given + speculative["replays_rejected"]).all()
    assert (passes >= speculative["rounds"] + speculative["replays"]).all()
    # Only where rounding flips a near tie is a replay rejected, and only quantized targets do.
    assert (speculative["replays_rejected"][speculative["common_prefix"] == 64] == 0).all()
    assert (speculative["drafted"] <= speculative["gamma"] * speculative["rounds"]).all()
    assert (speculative["accepted_per_position"].map(sum) == speculative["accepted"]).all()


def test_acceptance_falls_with_gamma_and_is_higher_for_the_larger_draft(speculative):
    cells = speculative[speculative["suite"].isin(["B", "D"])]
    sums = cells.groupby(["target", "draft", "gamma"])[["accepted", "drafted"]].sum()
    rate = (sums["accepted"] / sums["drafted"]).unstack("gamma")
    assert (rate[4] > rate[8]).all()
    assert (rate[8] > rate[16]).all()
    assert rate.to_numpy().min() > 0.05
    assert rate.to_numpy().max() < 0.95
    for target in ("moe_q4", "moe_q8"):
        assert (rate.loc[(target, "draft_2b")] > rate.loc[(target, "draft_0.8b")]).all()


def test_every_repeat_gives_the_same_tokens(runs):
    cells = runs.groupby(["suite", "target", "draft", "gamma", "prompt"])["tokens"]
    assert (cells.agg(lambda tokens: len(set(map(tuple, tokens)))) == 1).all()


def test_the_machine_is_described_before_each_repeat_and_its_fastest_memory_kept(demo_folder):
    campaign = demo_folder / "results/demo"
    described = [campaign / f"hosts/r{repeat}.json" for repeat in range(REPEATS)]
    for repeat, description in enumerate(described):
        measured = [path.stat().st_mtime for path in campaign.glob(f"blocks/**/r{repeat}.json")]
        before = [path.stat().st_mtime for path in campaign.glob(f"blocks/**/r{repeat - 1}.json")]
        assert max(before, default=0) < description.stat().st_mtime < min(measured)
    host, *hosts = (json.loads(path.read_text()) for path in (campaign / "host.json", *described))
    key = "memory_bandwidth_bytes_per_second"
    assert host[key] == max(one[key] for one in hosts)
    assert host["memory_bandwidth_source"].endswith(f"the highest of {REPEATS}")


def test_no_row_breaks_a_check_of_the_audit_that_does_not_rest_on_time(demo_folder):
    assert untimed_verdicts(demo_folder / "results/demo") == SOUND


def test_the_controls_pass_and_the_paper_says_so(demo_folder):
    audit = pd.read_parquet(demo_folder / "results/demo/audit/audit.parquet")
    outcomes = audit.loc[audit["check"] == "controls", "verdict"].value_counts()
    assert outcomes.to_dict() == {"pass": 16, "not applicable": 244}
    assert r"\ControlsPassedtrue" in (demo_folder / "paper/macros.tex").read_text()


def test_passage_prompts_have_exactly_their_length(runs):
    passages = runs[runs["prompt"].str.startswith("passage-")]
    assert (
        passages["prompt"].str.removeprefix("passage-").astype(int) == passages["n_prompt"]
    ).all()


def test_text_varies(runs):
    assert runs["tokens"].map(lambda tokens: len(set(tokens))).min() > 20


def test_blocks_ran_repeat_after_repeat_with_suites_mixed(runs):
    blocks = runs.sort_values("started_at").drop_duplicates("block")
    assert blocks["repeat"].is_monotonic_increasing
    assert blocks["suite"].ne(blocks["suite"].shift()).sum() > len(STUDY) * 3


def test_the_log_of_a_block_tells_every_run(demo_folder):
    log = demo_folder / "results/demo/logs/measure_block/B/moe_q4/draft_2b/g4/r0.log"
    lines = log.read_text().splitlines()
    assert len(lines) == 4
    assert all(
        re.fullmatch(rf"run {i} of 4: \S+: [\d.]+ tok/s, acceptance [\d.]+%", line)
        for i, line in enumerate(lines, start=1)
    )


@needs_tex
def test_the_paper_and_its_supplement_compile_without_a_complaint(demo_folder):
    for document in ("main", "supplement"):
        log = demo_folder / f"results/demo/logs/render_pdf/{document}.tex.log"
        assert complaints(log.read_text()) == []
    assert 6 <= pages(demo_folder / "paper/main.pdf") <= 10
