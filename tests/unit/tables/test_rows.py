"""The tables show the analysis's numbers, in order, and only what was measured."""

from dataclasses import replace

import pandas as pd

from ..paper_analyses import (
    analysis_of,
    baseline_runs,
    controlled,
    full,
    sampled,
    several_methods,
    several_types,
    speculative_runs,
    without_drafts,
)
from ..rendered_tables import page_tables, rows


def test_suites_are_summed():
    assert rows("suites", full()) == [
        ["B", "Drafts_50%", "12", "1200", "1199"],
        ["F", "Lengths", "5", "34", "34"],
        ["", "Total", "17", "1234", "1233"],
    ]


def test_models_have_their_roles_and_moe_comes_first():
    assert [(row[0], row[4], row[-1]) for row in rows("models", full())] == [
        ("MoE Q4", "8 / 256", "target"),
        ("Draft 0.8B", "–", "draft"),
        ("Draft 2B", "–", "draft"),
        ("Dense 4B", "–", "target"),
    ]
    assert {row[-1] for row in rows("models", without_drafts())} == {"baseline"}
    roles = {row[0]: row[-1] for row in rows("models", controlled())}
    assert (roles["Stranger"], roles["MoE Q4"]) == ("control", "target")


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


def test_speculation_shows_paired_and_unpaired_speedup_acceptance_and_accepted_length():
    # 20 of 40 drafted tokens in 10 rounds are kept: 50 %, 1 + 20/10 tokens a round.
    first, *others = rows("speculation", full())
    assert len(others) == 4  # none of the suites of exact length
    assert first == [
        "MoE Q4", "Draft 0.8B", "4", "1.20 [1.20, 1.20]", "60.0 ±0.0", "1.00 [1.00, 1.00]",
        "1.20 [1.20, 1.20]", "1.20", "50.0", "3.00",
    ]  # fmt: skip


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


def test_types_stand_by_the_bytes_of_a_pass_with_the_gain_over_the_smallest():
    small, large = rows("types", several_types())
    assert small == [
        *("MoE", "Draft 0.8B", "4", "1.0GB", "MoE Q4", "Q4_K_M", "50.0", "1.20 [1.20, 1.20]"),
        "1.00",
    ]
    assert large[3:] == [
        "2.0GB", "MoE Q8", "Q8_0", "50.0", "1.50 [1.50, 1.50]", "1.25 [1.25, 1.25]",
    ]  # fmt: skip


def test_ways_of_drafting_have_the_literatures_name_the_engines_and_their_parameters():
    draft, *_, lookup = rows("methods", several_methods())
    assert draft[:5] == ["MoE Q4", "draft model", "draft-simple", "Draft 0.8B", "4"]
    # Ten rounds accept 20 of 40 tokens; 79 steps give the other tokens but the first.
    assert draft[5:] == [
        "1.20 [1.20, 1.20]", "12.7", "50", "3.00", "3.00", "0.00", "1.20 [1.20, 1.20]", "50",
    ]  # fmt: skip
    assert lookup[:5] == ["Dense 4B", "prompt lookup", "ngram-simple", "n = 3", "4"]
    assert lookup[6:11] == ["0.0", *["–"] * 4]
    named = {row[1]: (row[2], row[3]) for row in rows("methods", several_methods())}
    assert named["MTP"] == ("draft-mtp", "p ≥ 0.5")
    assert named["n-gram pool"] == ("ngram-mod", "n = 2")
    strong = [cell.text for row in page_tables(several_methods())["methods"].rows for cell in row
              if cell.strong]  # fmt: skip
    # N-grams that drafted nothing reach 0.98 on the dense target.
    assert strong == ["1.60", "0.90"]


def test_positions_and_accepted_lengths_have_a_dash_where_no_draft_reached():
    table = page_tables(several_methods())["positions"]
    assert [column.of for column in table.columns[3::2]] == ["1", "2", "3", "4", "8"]
    short, long, *_ = rows("positions", several_methods())
    assert short[3:] == ["50", "50", *["100", "50"] * 3, "–", "–"]
    assert long[3:] == ["50", "50", *["100", "50"] * 4]
    lengths = page_tables(several_methods())["accepted_lengths"]
    assert [column.of for column in lengths.columns[4:]] == ["0", "1", "2", "3", "4", "5–8"]
    short, long, *_ = rows("accepted_lengths", several_methods())
    assert short[3:] == ["20", "50", "0", "0", "0", "50", "–"]
    assert long[3:] == ["20", "50", "0", "0", "0", "0", "50"]


def test_controls_have_what_is_due_and_the_runs_that_fail():
    itself, unrelated, uncounted = rows("controls", controlled(failed=1))
    assert itself[:6] == ["MoE Q4", "MoE Q4", "4", "drafts for itself", "50.0", "≥ 95"]
    assert itself[-1] == "1 / 2"
    assert unrelated[3:6] == ["unrelated draft", "50.0", "≤ 5"]
    assert unrelated[-1] == "0 / 2"
    assert uncounted[-1] == "–"


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


def test_identity_counts_runs_over_suites_and_gammas():
    # The second repeat of every cell leaves the baseline after 40 tokens.
    assert rows("identity", full()) == [
        ["MoE Q4", "Draft 0.8B", "8", "4", "40"],
        ["MoE Q4", "Draft 2B", "2", "1", "40"],
        ["Dense 4B", "Draft 0.8B", "4", "2", "40"],
    ]


def test_what_the_audit_could_not_judge_is_counted_beside_what_it_broke():
    analysis = controlled()
    audit = analysis.audit.assign(losslessness_not_judged=2)
    [row] = [
        row for row in rows("findings", replace(analysis, audit=audit)) if row[0] == "losslessness"
    ]
    assert row[3:5] == ["0 / 0", "2"]


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
