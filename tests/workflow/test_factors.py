"""Suites whose comparisons differ in requests at once or in the engine's options, measured."""

import pandas as pd
import pytest

from specmoe.records import load
from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign

TEXT = "--cache-type-k q8_0 --n-cpu-moe 2"


@pytest.fixture(scope="module")
def results(snakemake, engine_bin, module_folder):
    """The results of a suite of each kind."""
    config = tiny_campaign(engine_bin)
    models = config["model_sets"]["tiny"]
    experts = {"experts": 8, "experts_used": 2, "expert_ffn": 256}
    models["moe"] = {"kind": "synthetic", "recipe": models["target"]["recipe"] | experts}
    config["campaign"]["suites"] = ["U", "Q8"]
    config["measurement"]["engine_args"] = ["--poll", 0]
    config["suites"] = {
        "U": {
            "title": "Requests at once",
            "targets": ["target"],
            "drafts": ["draft"],
            "gammas": [2],
            "prompts": [8, 16, 24],
            "vary": {"requests": [1, 2]},
        },
        "Q8": {
            "title": "Options",
            "targets": ["moe"],
            "methods": [{"method": "draft", "drafts": ["draft"], "p_min": [0, 0.5]}],
            "gammas": [4],
            "prompts": ["code"],
            "vary": {"engine_args": [[], TEXT.split()]},
        },
    }
    run_campaign(snakemake, module_folder, config, "results/tiny/analysis")
    return module_folder / "results/tiny"


@pytest.fixture(scope="module")
def runs(results):
    return read_runs(results / "runs.parquet")


def test_each_level_has_its_runs_against_baselines_of_its_own(runs, results):
    loads, options = (runs[runs["suite"] == suite] for suite in ("U", "Q8"))
    assert loads.groupby("level")["concurrency"].unique().str[0].to_dict() == {"1": 1, "2": 2}
    assert loads["load_tokens_per_second"].notna().all()
    found = options[["level", "draft", "engine_options"]].itertuples(index=False, name=None)
    assert sorted(found) == [
        (level, draft, given)
        for level, given in [(TEXT, f"--poll 0 {TEXT}"), ("none", "--poll 0")]
        for draft in ("draft", "draft-p0.5", "none")
    ]
    drafted = runs[runs["draft"] != "none"]
    assert (drafted["baseline"].map(runs.set_index("run")["block"]) == drafted["block"]).all()
    audit = pd.read_parquet(results / "analysis/audit.parquet")
    whole = audit[audit["target"] == "all"].iloc[0]
    assert whole["runs"] == whole["accounting_passed"] == len(runs) == 12 + 6


def test_each_server_of_a_block_had_its_level(results):
    blocks = results / "blocks"
    for number in (1, 2):
        for arm in load(blocks / f"U/target/{number}/r0.jsonl")[1]["arms"]:
            assert arm["command"][arm["command"].index("--parallel") + 1] == str(number)
            assert arm["server"]["slots"] == number
    kept = TEXT.replace(" ", "+")
    for level in ("none", kept):
        _, record = load(blocks / f"Q8/moe/{level}/r0.jsonl")
        for arm in record["arms"]:
            assert ("--n-cpu-moe" in arm["command"]) == (level == kept)
            assert arm["command"][arm["command"].index("--poll") + 1] == "0"


def test_the_table_tells_the_levels_apart(results):
    levels = pd.read_parquet(results / "analysis/levels.parquet")
    found = sorted(levels[["suite", "level", "draft"]].itertuples(index=False, name=None))
    options = [(level, draft) for level in (TEXT, "none") for draft in ("draft", "draft-p0.5")]
    assert found == [*(("Q8", *one) for one in options), *(("U", n, "draft") for n in "12")]
    assert pd.read_parquet(results / "analysis/settings.parquet").empty
