"""A suite whose comparisons differ in the engine's options, through the real workflow."""

import re

import pandas as pd
import pytest

from specmoe.records import load
from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign

ENTRY = ["--cache-type-k", "q8_0", "--n-cpu-moe", 2]
TEXT = "--cache-type-k q8_0 --n-cpu-moe 2"


@pytest.fixture(scope="module")
def printed_and_folder(snakemake, engine_bin, module_folder):
    """What `advise` prints of a campaign of one suite, two sets of options and one repeat."""
    config = tiny_campaign(engine_bin)
    models = config["model_sets"]["tiny"]
    experts = {"experts": 8, "experts_used": 2, "expert_ffn": 256}
    moe = {"kind": "synthetic", "label": "MoE", "recipe": models["target"]["recipe"] | experts}
    config["model_sets"]["tiny"] = {"moe": moe, "draft": models["draft"]}
    config["campaign"]["suites"] = ["Q8"]
    config["measurement"]["engine_args"] = ["--poll", 0]
    config["suites"] = {
        "Q8": {
            "title": "Options",
            "targets": ["moe"],
            "methods": [{"method": "draft", "drafts": ["draft"], "p_min": [0, 0.5]}],
            "gammas": [4],
            "prompts": ["code"],
            "vary": {"engine_args": [[], ENTRY]},
        }
    }
    plan = run_campaign(snakemake, module_folder, config, "plan")
    return plan, run_campaign(snakemake, module_folder, config, "advise", "site"), module_folder


def test_kv_types_experts_on_the_cpu_and_p_min_are_axes_of_one_suite(printed_and_folder):
    runs = read_runs(printed_and_folder[2] / "results/tiny/runs.parquet")
    found = sorted(
        zip(runs["level"], runs["draft"], runs["p_min"], runs["engine_options"], strict=True),
        key=str,
    )
    drafts = [("draft", 0.0), ("draft-p0.5", 0.5), ("none", None)]
    assert [(*row[:2], None if pd.isna(row[2]) else row[2], row[3]) for row in found] == [
        (level, draft, p_min, text)
        for level, text in [(TEXT, f"--poll 0 {TEXT}"), ("none", "--poll 0")]
        for draft, p_min in drafts
    ]
    assert set(runs["target"]) == {"moe"}
    of_own_block = runs.set_index("run")["block"]
    drafted = runs[runs["draft"] != "none"]
    assert (drafted["baseline"].map(of_own_block) == drafted["block"]).all()


def test_each_server_of_a_block_had_its_options(printed_and_folder):
    folder = printed_and_folder[2] / "results/tiny/blocks/Q8/moe"
    kept = TEXT.replace(" ", "+")
    for level, drafted in {"none": ["f16"], kept: ["f16", "q8_0"]}.items():
        _, record = load(folder / level / "r0.jsonl")
        alone, *others = (side["server"]["cache_types"] for side in record["sides"])
        assert alone == (["f16", "q8_0"] if level == kept else ["f16"])
        assert others == [drafted, drafted]
        for side in record["sides"]:
            assert ("--n-cpu-moe" in side["command"]) == (level == kept)
            assert side["command"][side["command"].index("--poll") + 1] == "0"


def test_plan_page_and_table_tell_the_options_apart(printed_and_folder):
    plan, _, folder = printed_and_folder
    assert f"leave these options out: --poll 0; --poll 0 {TEXT}" in plan
    page = (folder / "results/tiny/site/index.html").read_text()
    assert TEXT in page
    conditions = re.search(r"Engine options.{0,200}", page, re.DOTALL)
    assert conditions
    assert "--poll 0" in conditions[0]
    levels = pd.read_parquet(folder / "results/tiny/analysis/levels.parquet")
    drafts = ["draft", "draft-p0.5"]
    found = sorted(levels[["level", "draft"]].itertuples(index=False, name=None))
    assert found == [(level, draft) for level in (TEXT, "none") for draft in drafts]
