"""The synthetic campaign with fewer repeats, settings and tokens, on a real engine."""

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
N_PREDICT = 48
DRAFTED = {"gammas": [4, 16], "prompts": ["code", "long_reasoning"]}
SUITES = {
    "A": {"targets": ["moe_q4"], "prompt_lengths": [64]},
    "B": DRAFTED,
    "C": {"targets": ["dense_2b", "dense_9b"], "prompt_lengths": [64]},
    "D": {"targets": ["dense_9b"], **DRAFTED},
    "F": {"prompt_lengths": [32, 1024]},
    # The MoE itself and an unrelated draft, each beside no draft.
    "K": {"targets": ["moe_q4"], "prompts": ["code"]},
    # A draft model, five kinds of n-grams and MTP.
    "M": {"targets": ["moe_q4"], "prompts": ["code_to_edit"]},
}
# With the targets alone beside the 32 and 8 runs of B and D.
RUNS = {"A": 2, "B": 32 + 16, "C": 4, "D": 8 + 4, "F": 8, "K": 8, "M": 2 * 2 * 7}


@pytest.fixture(scope="module")
def synthetic_folder(snakemake, engine_bin, root, module_folder) -> Path:
    """The synthetic campaign's results and paper, measured on the engine the other tests use."""
    overlay = {
        "campaign": {"engine": "built"},
        "engines": {"built": {"source": "path", "path": str(engine_bin)}},
        "suites": SUITES,
        # The threads of an engine wait for each other, and another test process has the other core.
        # It disturbs nearly every run, and no test looks at a time.
        "measurement": {
            **{"repeats": REPEATS, "n_predict": N_PREDICT, "warmups": 1, "threads": 1},
            "gate": {"retries": 0},
        },
    }
    (module_folder / "engine.yaml").write_text(yaml.safe_dump(overlay))
    files = [str(root / "config/synthetic.yaml"), str(module_folder / "engine.yaml")]
    snakemake("paper", "--configfile", *files, folder=module_folder)
    return module_folder


@pytest.fixture(scope="module")
def runs(synthetic_folder) -> pd.DataFrame:
    return read_runs(synthetic_folder / "results/synthetic/runs.parquet")


@pytest.fixture(scope="module")
def speculative(runs) -> pd.DataFrame:
    return runs[runs["draft"] != "none"]


def test_all_runs_of_the_study_and_the_controls_are_measured(runs):
    assert runs["suite"].value_counts().to_dict() == RUNS
    assert (runs["decode_failures"] == 0).all()
    assert all(len(tokens) == N_PREDICT for tokens in runs["tokens"])


def test_every_speculative_run_has_its_baseline_and_their_common_prefix(runs, speculative):
    baselines = runs.set_index("run").loc[speculative["baseline"]].reset_index()
    for column in ("block", "target", "prompt", "pass", "repeat", "n_prompt", "arrangement"):
        assert (baselines[column].to_numpy() == speculative[column].to_numpy()).all()
    assert speculative["common_prefix"].between(0, N_PREDICT).all()
    unquantized = speculative[speculative["target"] == "dense_9b"]
    assert (unquantized["common_prefix"] == N_PREDICT).all()


def test_every_row_obeys_the_engines_arithmetic(runs, speculative):
    plain = runs[runs["draft"] == "none"]
    assert (plain["decodes"] == plain["n_predict"]).all()
    # The prompt's pass gives the first token; every later pass gives one and the accepted ones.
    passes = speculative["decodes"] - 1
    given = speculative["n_predict"] - 1 - speculative["accepted"]
    assert (passes == given + speculative["replays_rejected"]).all()
    assert (passes >= speculative["rounds"] + speculative["replays"]).all()
    # A replay is rejected only where rounding flips a near tie, which quantized targets alone do.
    # A pass and its replay may flip one back and forth, so equal tokens do not rule it out.
    unquantized = speculative[speculative["target"] == "dense_9b"]
    assert (unquantized["replays_rejected"] == 0).all()
    assert (speculative["drafted"] <= speculative["gamma"] * speculative["rounds"]).all()
    assert (speculative["accepted_per_position"].map(sum) == speculative["accepted"]).all()


def test_acceptance_falls_with_gamma_and_is_higher_for_the_larger_draft(speculative):
    cells = speculative[speculative["suite"].isin(["B", "D"])]
    sums = cells.groupby(["target", "draft", "gamma"])[["accepted", "drafted"]].sum()
    rate = (sums["accepted"] / sums["drafted"]).unstack("gamma")
    assert (rate[4] > rate[16]).all()
    assert rate.to_numpy().min() > 0.05
    assert rate.to_numpy().max() < 0.95
    for target in ("moe_q4", "moe_q8"):
        small, large = (sums.loc[target, draft].sum() for draft in ("draft_0.8b", "draft_2b"))
        assert large["accepted"] / large["drafted"] > small["accepted"] / small["drafted"]


def test_every_repeat_gives_the_same_tokens(runs):
    cells = runs.groupby(["suite", "target", "draft", "gamma", "prompt"])["tokens"]
    assert (cells.agg(lambda tokens: len(set(map(tuple, tokens)))) == 1).all()


def test_the_machine_is_described_before_each_repeat_and_the_fastest_memory_is_kept(
    synthetic_folder,
):
    campaign = synthetic_folder / "results/synthetic"
    described = [campaign / f"hosts/r{repeat}.json" for repeat in range(REPEATS)]
    for repeat, description in enumerate(described):
        measured = [path.stat().st_mtime for path in campaign.glob(f"blocks/**/r{repeat}.json")]
        before = [path.stat().st_mtime for path in campaign.glob(f"blocks/**/r{repeat - 1}.json")]
        assert max(before, default=0) < description.stat().st_mtime < min(measured)
    host, *hosts = (json.loads(path.read_text()) for path in (campaign / "host.json", *described))
    key = "memory_bandwidth_bytes_per_second"
    rates = [one[key] for one in hosts]
    assert host[key] == max(rates)
    spread = f"the highest of {REPEATS}, from {min(rates) / 1e9:.0f} GB/s on"
    assert host["memory_bandwidth_source"].endswith(spread)


def test_every_row_passes_the_checks_of_the_audit_that_use_no_times(
    synthetic_folder, runs, speculative
):
    verdicts = {
        (check, "pass"): len(runs) for check in ("accounting", "determinism", "failed_decodes")
    }
    verdicts["losslessness", "pass"] = len(speculative)
    verdicts["losslessness", "not applicable"] = len(runs) - len(speculative)
    assert untimed_verdicts(synthetic_folder / "results/synthetic") == verdicts


def test_the_controls_accept_as_they_must_and_the_paper_says_what_the_audit_found(
    synthetic_folder, speculative
):
    controls = speculative[speculative["suite"] == "K"]
    acceptance = (controls["accepted"] / controls["drafted"]).astype(float)
    assert acceptance[controls["draft"] == controls["target"]].min() >= 0.95
    assert acceptance[controls["draft"] == "stranger"].max() <= 0.05
    # An unrelated draft must also be slower than none, which a busy machine can hide.
    audit = pd.read_parquet(synthetic_folder / "results/synthetic/audit/audit.parquet")
    found = audit.loc[audit["check"] == "controls", "verdict"].value_counts().to_dict()
    failed = found.get("fail", 0)
    assert found["pass"] + failed == len(controls) == 4
    macros = (synthetic_folder / "paper/macros.tex").read_text()
    assert rf"\ControlsPassed{'false' if failed else 'true'}" in macros


def test_passage_prompts_have_exactly_their_length(runs):
    passages = runs[runs["prompt"].str.startswith("passage-")]
    assert (
        passages["prompt"].str.removeprefix("passage-").astype(int) == passages["n_prompt"]
    ).all()


def test_text_varies(runs):
    assert runs["tokens"].map(lambda tokens: len(set(tokens))).min() > 20


def test_repeats_follow_one_another_with_mixed_suites(runs):
    blocks = runs.sort_values("started_at").drop_duplicates("block")
    assert blocks["repeat"].is_monotonic_increasing
    assert blocks["suite"].ne(blocks["suite"].shift()).sum() > len(SUITES)


def test_the_log_of_a_block_has_every_run_and_each_side_its_servers_log(synthetic_folder):
    logs = synthetic_folder / "results/synthetic/logs/measure_block/B/moe_q4/draft_2b"
    lines = (logs / "r0.log").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("attempt ")]  # the machine was disturbed
    assert len(lines) == 6
    assert all(
        re.fullmatch(rf"run {i} of 6: \S+: [\d.]+ s, [\d.]+ tok/s(, acceptance [\d.]+%)?", line)
        for i, line in enumerate(lines, start=1)
    )
    servers = {path.name for path in logs.glob("r0.server.*")}
    assert servers == {f"r0.server.{side}.log" for side in ("alone", "g4", "g16")}


@needs_tex
def test_the_paper_and_its_supplement_compile_without_a_complaint(synthetic_folder):
    for document in ("main", "supplement"):
        log = synthetic_folder / f"results/synthetic/logs/render_pdf/{document}.tex.log"
        assert complaints(log.read_text()) == []
    assert (
        6 <= pages(synthetic_folder / "paper/main.pdf") <= 12
    )  # with references, and four of claims
