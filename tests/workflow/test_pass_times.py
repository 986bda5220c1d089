"""A campaign whose engine was built from source times passes by themselves."""

import json
import shutil

import pandas as pd
import pytest

from specmoe.config.engines import Backend, GitEngine
from specmoe.engine.identity import engine_id

from ..small_campaign import run_campaign, tiny_campaign

ENTRY = {"source": "git", "url": "https://example.org/llama.cpp", "tag": "b1", "commit": "0123456"}
TIMED = {("target", "all"), ("draft", "last")}


def built_from_source(config, folder, engine_bin):
    """Let a campaign in a folder take the tests' engine for one that was built there."""
    config["engines"]["built"] = ENTRY
    built = folder / "results/engines" / engine_id("built", Backend.CPU, GitEngine(**ENTRY), {})
    built.mkdir(parents=True)
    for part in engine_bin.parent.iterdir():
        (built / part.name).symlink_to(part)
    own, description = built / "engine.json", engine_bin.parent / "engine.json"
    own.unlink()
    own.write_text(json.dumps(json.loads(description.read_text()) | {"id": built.name}))
    shutil.copystat(description, own)  # or the programs beside it would be built again


@pytest.fixture(scope="module")
def timed(snakemake, engine_bin, pass_bench, module_folder):
    """A packed campaign of imposed acceptance, and how to run snakemake on it."""
    assert pass_bench.is_file()
    config = tiny_campaign(engine_bin)
    built_from_source(config, module_folder, engine_bin)
    config["campaign"]["suites"] = ["S"]
    config["suites"]["S"] |= {"gammas": [1, 4], "vary": {"forced_acceptance": [0, 1]}}
    config["measurement"] |= {"repeats": 2, "pass_samples": 2, "n_predict": 24}

    def run(*args: str) -> str:
        return run_campaign(snakemake, module_folder, config, *args)

    run("results/tiny/analysis", "pack_campaign")
    return module_folder, run


def test_every_model_is_timed_in_every_repeat_in_its_own_part(timed):
    folder, _ = timed
    times = pd.read_parquet(folder / "results/tiny/pass_times.parquet")
    assert {*zip(times["model"], times["outputs"], strict=True)} == TIMED
    assert set(times["width"]) == {1, 2, 5}
    assert times.groupby("model")["repeat"].unique().map(set).eq({0, 1}).all()
    assert times["host"].nunique() == times["engine"].nunique() == 1


def test_the_cost_model_tells_the_pass_from_the_rest_of_a_round(timed):
    folder, _ = timed
    passes = pd.read_parquet(folder / "results/tiny/analysis/verification.parquet")
    assert passes["timed"].all()
    assert list(passes["width"]) == [1, 2, 5]
    assert passes["steps"].is_monotonic_increasing
    rounds = passes[passes["round_steps"].notna()]
    assert (rounds["reread_steps"] > 0).all()
    assert (rounds["rest_steps"] >= 0).all()


def test_the_times_are_packed_and_nothing_is_timed_again(timed):
    folder, run = timed
    packed = folder / "results/tiny/cached/pass_times.parquet"
    assert packed.read_bytes() == (folder / "results/tiny/pass_times.parquet").read_bytes()
    assert "Nothing to be done" in run("--dry-run", "results/tiny/analysis")


def test_an_engine_built_elsewhere_times_no_passes(campaign, tiny):
    assert "measure_pass_times" not in campaign(tiny, "--dry-run", "tables")
