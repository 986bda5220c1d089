"""A suite of requests at once, through the real workflow, in a campaign of nothing else."""

import pandas as pd
import pytest

from specmoe.records import load
from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign

RESULTS = "results/tiny"


@pytest.fixture(scope="module")
def printed_and_folder(snakemake, engine_bin, module_folder):
    """What `plan`, and `advise` with the page, print of one suite at 1 and 2 requests."""
    config = tiny_campaign(engine_bin)
    config["campaign"]["suites"] = ["U"]
    config["measurement"]["repeats"] = 2
    config["suites"] = {
        "U": {
            "title": "Requests at once",
            "targets": ["target"],
            "drafts": ["draft"],
            "gammas": [2],
            "prompts": [8, 16, 24],
            "vary": {"requests": [1, 2]},
        }
    }
    plan = run_campaign(snakemake, module_folder, config, "plan")
    return plan, run_campaign(snakemake, module_folder, config, "advise", "site"), module_folder


def test_each_number_has_its_own_baselines_and_servers(printed_and_folder):
    folder = printed_and_folder[2] / RESULTS
    runs = read_runs(folder / "runs.parquet")
    assert runs.groupby("level")["concurrency"].unique().str[0].to_dict() == {"1": 1, "2": 2}
    blocks = runs.set_index("run")["block"]
    drafted = runs[runs["draft"] != "none"]
    assert (drafted["baseline"].map(blocks) == drafted["block"]).all()
    assert runs["load_tokens_per_second"].notna().all()
    for number in (1, 2):
        _, record = load(folder / f"blocks/U/target/{number}/r0.jsonl")
        for side in record["sides"]:
            assert side["command"][side["command"].index("--parallel") + 1] == str(number)
            assert side["server"]["slots"] == number


def test_the_audit_counts_every_run(printed_and_folder):
    audit = pd.read_parquet(printed_and_folder[2] / RESULTS / "analysis/audit.parquet")
    whole = audit[audit["target"] == "all"].iloc[0]
    assert (whole["runs"], whole["accounting_passed"]) == (24, 24)


def test_plan_tables_and_page_tell_of_it(printed_and_folder):
    plan, _, folder = printed_and_folder
    assert "2 requests at once" in plan
    analysis = folder / RESULTS / "analysis"
    levels = pd.read_parquet(analysis / "levels.parquet")
    assert levels[["level", "blocks"]].to_numpy().tolist() == [["1", 2], ["2", 2]]
    assert pd.read_parquet(analysis / "cells.parquet").empty
    page = (folder / RESULTS / "site/index.html").read_text()
    assert 'id="table-levels"' in page
