"""A draft reads what its target wrote, and every run by that draft has the rounds that follow."""

import pandas as pd
import pytest

from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign
from .test_pass_times import built_from_source

GAMMAS, CHANCES = [1, 2, 4, 8], [0, 0.2]


@pytest.fixture(scope="module")
def read(snakemake, engine_bin, read_agreement, module_folder):
    """A packed campaign of several draft lengths, and how to run snakemake on it."""
    assert read_agreement.is_file()
    config = tiny_campaign(engine_bin)
    built_from_source(config, module_folder, engine_bin)
    config["campaign"]["suites"] = ["S"]
    way = {"method": "draft", "drafts": ["draft"], "gammas": GAMMAS, "p_min": CHANCES}
    config["suites"]["S"] |= {"drafts": [], "gammas": [], "methods": [way]}
    config["measurement"] |= {"pass_samples": 2, "n_predict": 40, "warmups": 0}

    def run(*args: str) -> str:
        return run_campaign(snakemake, module_folder, config, *args)

    run("results/tiny/analysis", "pack_campaign")
    return module_folder / "results/tiny", run


def test_every_token_of_every_text_is_read(read):
    folder, _ = read
    agreement = pd.read_parquet(folder / "agreement.parquet")
    runs = read_runs(folder / "runs.parquet")
    alone = runs[runs["draft"] == "none"]
    texts = {tuple(one["token"]) for _, one in agreement.groupby(["prompt", "text"])}
    assert texts == {tuple(tokens) for tokens in alone["tokens"]}
    assert agreement["agrees"].nunique() == 2


def test_the_rounds_of_every_run_are_those_of_the_reading(read):
    folder, _ = read
    audit = pd.read_parquet(folder / "audit/audit.parquet")
    found = audit[(audit["check"] == "agreement") & (audit["draft"] != "none")]
    assert len(found) == 2 * len(GAMMAS) * len(CHANCES)
    assert set(found["verdict"]) == {"pass"}
    assert not found["why"].str.contains("tie").any()
    # The draft did stop early, and did go on.
    drafted = read_runs(folder / "runs.parquet").groupby(["gamma", "p_min"])["drafted"].sum()
    stopped = drafted.xs(CHANCES[1], level="p_min") / drafted.xs(0, level="p_min")
    assert stopped[GAMMAS[-1]] < 1
    assert stopped[GAMMAS[-1]] > 0


def test_the_reading_is_packed_and_nothing_is_read_again(read):
    folder, run = read
    packed = folder / "cached/agreement.parquet"
    assert packed.read_bytes() == (folder / "agreement.parquet").read_bytes()
    assert "Nothing to be done" in run("--dry-run", "results/tiny/analysis")
