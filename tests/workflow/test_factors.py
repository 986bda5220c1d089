"""Suites whose comparisons differ in requests at once or in the engine's options, measured."""

import pandas as pd
import pytest

from specmoe.records import load
from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign

TEXT = "--cache-type-k q8_0 --n-cpu-moe 2"


@pytest.fixture(scope="module")
def plan_and_results(snakemake, engine_bin, module_folder):
    """What `plan` prints of a suite of each kind, and the results with the page."""
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
    plan = run_campaign(snakemake, module_folder, config, "plan")
    run_campaign(snakemake, module_folder, config, "advise", "site")
    return plan, module_folder / "results/tiny"


@pytest.fixture(scope="module")
def runs(plan_and_results):
    return read_runs(plan_and_results[1] / "runs.parquet")


def test_each_level_has_its_runs_against_baselines_of_its_own(runs, plan_and_results):
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
    audit = pd.read_parquet(plan_and_results[1] / "analysis/audit.parquet")
    whole = audit[audit["target"] == "all"].iloc[0]
    assert whole["runs"] == whole["accounting_passed"] == len(runs) == 12 + 6


def test_each_server_of_a_block_had_its_level(plan_and_results):
    blocks = plan_and_results[1] / "blocks"
    for number in (1, 2):
        for side in load(blocks / f"U/target/{number}/r0.jsonl")[1]["sides"]:
            assert side["command"][side["command"].index("--parallel") + 1] == str(number)
            assert side["server"]["slots"] == number
    kept = TEXT.replace(" ", "+")
    for level, drafted in {"none": ["f16"], kept: ["f16", "q8_0"]}.items():
        _, record = load(blocks / f"Q8/moe/{level}/r0.jsonl")
        alone, *others = (side["server"]["cache_types"] for side in record["sides"])
        assert alone == (["f16", "q8_0"] if level == kept else ["f16"])
        assert others == [drafted, drafted]
        for side in record["sides"]:
            assert ("--n-cpu-moe" in side["command"]) == (level == kept)
            assert side["command"][side["command"].index("--poll") + 1] == "0"


def test_plan_table_and_page_tell_the_levels_apart(plan_and_results):
    plan, folder = plan_and_results
    assert "2 requests at once" in plan
    assert f"leave these options out: --poll 0; --poll 0 {TEXT}" in plan
    levels = pd.read_parquet(folder / "analysis/levels.parquet")
    found = sorted(levels[["suite", "level", "draft"]].itertuples(index=False, name=None))
    options = [(level, draft) for level in (TEXT, "none") for draft in ("draft", "draft-p0.5")]
    assert found == [*(("Q8", *one) for one in options), *(("U", n, "draft") for n in "12")]
    assert pd.read_parquet(folder / "analysis/cells.parquet").empty
    assert 'id="figure-levels"' in (folder / "site/index.html").read_text()
