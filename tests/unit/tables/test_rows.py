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


def test_levels_stand_in_order():
    greedy, warm = rows("levels", sampled())
    assert greedy[2:6] == ["4", "0", "50.0", "60.0"]
    assert warm[2:7] == ["4", "0.7", "50.0", "60.0", "1.20 [1.20, 1.20]"]


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
