"""The tables show the analysis's numbers, in order, and only what was measured."""

from dataclasses import replace

import pandas as pd

from ..paper_analyses import (
    analysis_of,
    baseline_runs,
    full,
    sampled,
    speculative_runs,
)
from ..rendered_tables import page_tables, rows


def test_hardware_has_units_and_leaves_out_what_is_not_known():
    analysis = full()
    campaign = analysis.campaign.assign(
        host_gpu="GPU_1",
        host_gpu_memory_bytes=None,
        host_given="",
        host_memory_bandwidth_bytes_per_second=8e11,
    )
    shown = dict(rows("hardware", replace(analysis, campaign=campaign)))
    assert shown["Processor"] == "Processor & Sons"
    assert shown["Memory"] == "16.0GiB"
    assert shown["Engine commit"] == "0123456789ab"
    assert shown["GPU"] == "GPU_1"
    assert shown["Memory bandwidth"] == "800.0GB/s"
    assert {"GPU memory", "Stated by hand"}.isdisjoint(shown)


def test_the_best_speedup_of_each_target_is_bold_and_no_other():
    cells = [row[3] for row in page_tables(full())["speculation"].rows]
    assert [cell.text for cell in cells if cell.strong] == ["1.40", "0.90"]


def test_two_suites_with_the_same_cell_are_told_apart():
    runs = baseline_runs(["moe_q4"], ["code"], 1)
    for suite, rate in [("B", 60), ("C", 70)]:
        runs += speculative_runs(suite, "moe_q4", "draft_2b", 4, [rate])
    names = [row[0] for row in rows("speculation", analysis_of(runs))]
    assert names == ["MoE Q4 (suite B)", "MoE Q4 (suite C)"]


def test_temperatures_stand_in_order():
    greedy, warm = rows("temperatures", sampled())
    assert greedy[2:5] == ["4", "0.0", "50.0"]
    assert warm[2:6] == ["4", "0.7", "50.0", "60.0"]


def test_each_text_has_its_own_row_where_a_campaign_sends_several():
    runs = [
        *baseline_runs(["moe_q4"], ["code", "chinese"], 2),
        *speculative_runs("B", "moe_q4", "draft_0.8b", 4, [60, 60], "code"),
        *speculative_runs("B", "moe_q4", "draft_0.8b", 4, [40, 40], "chinese"),
    ]
    assert [row[3:7] for row in rows("prompts", analysis_of(runs))] == [
        ["Chinese", "0.80 [0.80, 0.80]", "50.0", "40.0 ±0.0"],
        ["Code", "1.20 [1.20, 1.20]", "50.0", "60.0 ±0.0"],
    ]
    apart = [run | {"suite": "G"} if run["prompt"] == "chinese" else run for run in runs]
    assert "prompts" not in page_tables(analysis_of(apart))  # as in the table of every setting


def test_the_audit_lists_a_target_alone_before_its_drafts_and_the_campaign_last():
    cells = [("all", "all"), ("dense_4b", "draft_2b"), ("moe_q4", "draft_0.8b"), ("moe_q4", "none")]
    audit = pd.DataFrame(cells, columns=["target", "draft"]).assign(
        protocol=["all", "paired", "paired", "paired"],
        engine=["all", "built", "built", "built"],
        gamma=pd.array([None, 4, 4, 0], dtype="Int64"),
        runs=1,
        marked=0,
        impossible=0,
        implausible=0,
    )
    ordered = replace(full(), audit=audit).audit
    assert list(ordered[["target", "draft"]].itertuples(index=False, name=None)) == [
        ("moe_q4", "none"), ("moe_q4", "draft_0.8b"), ("dense_4b", "draft_2b"), ("all", "all")
    ]  # fmt: skip
