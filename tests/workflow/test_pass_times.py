"""Timed forward passes and draft scores, with an engine built from source."""

import json
import shutil

import pandas as pd
import pytest

from specmoe.config.engines import Backend, PypiEngine
from specmoe.engine.identity import engine_id
from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign

ENTRY = {"source": "pypi", "version": "0.0.1", "sha256": "0" * 64, "commit": "0123456"}
TIMED = {("target", "all"), ("draft", "last")}
GAMMAS, CHANCES = [1, 2, 4, 8], [0, 0.2]


def built_from_source(config, folder, engine_bin):
    """Let a campaign in a folder take the tests' engine for one that was built there."""
    config["engines"]["built"] = ENTRY
    built = folder / "results/engines" / engine_id("built", Backend.CPU, PypiEngine(**ENTRY), {})
    built.mkdir(parents=True)
    for part in engine_bin.parent.iterdir():
        (built / part.name).symlink_to(part)
    own, description = built / "engine.json", engine_bin.parent / "engine.json"
    own.unlink()
    own.write_text(json.dumps(json.loads(description.read_text()) | {"id": built.name}))
    shutil.copystat(description, own)  # or the programs beside it would be built again


@pytest.fixture(scope="module")
def timed(snakemake, engine_bin, model_passes, module_folder):
    """A packed campaign, with acceptance forced and real, and how to run snakemake on it."""
    assert model_passes.is_file()
    config = tiny_campaign(engine_bin)
    built_from_source(config, module_folder, engine_bin)
    config["campaign"]["suites"] = ["S", "R"]
    way = {"method": "draft", "drafts": ["draft"], "gammas": GAMMAS, "p_min": CHANCES}
    config["suites"]["R"] = config["suites"]["S"] | {"drafts": [], "gammas": [], "methods": [way]}
    config["suites"]["S"] |= {"gammas": [1, 4], "vary": {"forced_acceptance": [0, 1]}}
    config["measurement"] |= {"repeats": 2, "pass_samples": 2, "n_predict": 40, "warmups": 0}

    def run(*args: str) -> str:
        return run_campaign(snakemake, module_folder, config, *args)

    run("results/tiny/analysis", "pack_campaign")
    return module_folder / "results/tiny", run


def test_every_model_is_timed_in_every_repeat_in_its_own_part(timed):
    times = pd.read_parquet(timed[0] / "pass_times.parquet")
    assert {*zip(times["model"], times["outputs"], strict=True)} == TIMED
    assert set(times["n_tokens"]) == {1, 2, 3, 5, 9}
    assert times.groupby("model")["repeat"].unique().map(set).eq({0, 1}).all()
    assert times["machine"].nunique() == times["engine"].nunique() == 1


def test_the_cost_model_tells_the_pass_from_the_rest_of_a_round(timed):
    passes = pd.read_parquet(timed[0] / "analysis/verification.parquet")
    assert passes["timed"].all()
    assert list(passes["n_tokens"]) == [1, 2, 3, 5, 9]
    assert passes["steps"].is_monotonic_increasing
    rounds = passes[passes["round_steps"].notna()]
    assert (rounds["catchup_steps"] > 0).all()
    assert (rounds["overhead_steps"] >= 0).all()


def test_every_token_of_every_text_is_read(timed):
    agreement = pd.read_parquet(timed[0] / "agreement.parquet")
    runs = read_runs(timed[0] / "runs.parquet")
    alone = runs[(runs["suite"] == "R") & (runs["draft"] == "none")]
    texts = {tuple(one["token"]) for _, one in agreement.groupby(["prompt", "text"])}
    assert texts == {tuple(tokens) for tokens in alone["tokens"]}
    assert agreement["agrees"].nunique() == 2


def test_the_rounds_of_every_run_are_those_of_the_reading(timed):
    audit = pd.read_parquet(timed[0] / "audit/audit.parquet").query("suite == 'R'")
    found = audit[(audit["check"] == "agreement") & (audit["draft"] != "none")]
    assert len(found) == 2 * 2 * len(GAMMAS) * len(CHANCES)
    assert set(found["verdict"]) == {"pass"}
    assert not found["why"].str.contains("tie").any()
    # The draft model did stop early, and did go on.
    runs = read_runs(timed[0] / "runs.parquet").query("suite == 'R'")
    drafted = runs.groupby(["gamma", "p_min"])["drafted"].sum()
    stopped = drafted.xs(CHANCES[1], level="p_min") / drafted.xs(0, level="p_min")
    assert 0 < stopped[GAMMAS[-1]] < 1


def test_times_and_readings_are_packed_and_nothing_is_timed_or_read_again(timed):
    folder, run = timed
    for name in ("pass_times.parquet", "agreement.parquet"):
        assert (folder / "packed" / name).read_bytes() == (folder / name).read_bytes()
    assert "Nothing to be done" in run("--dry-run", "results/tiny/analysis")
