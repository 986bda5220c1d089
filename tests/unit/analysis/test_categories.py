"""By category: speedups with intervals over prompts, gaps that are shown, and how texts end."""

from dataclasses import replace
from math import exp, nan

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.advice_text import advice_values, describe_advice
from specmoe.analysis.categories import (
    compare_categories,
    gaps_between_categories,
    how_texts_end,
)
from specmoe.analysis.intervals import interval_over_prompts, ratio_of_prompts
from specmoe.analysis.registry import TABLES
from specmoe.analysis.sentences import describe_categories
from specmoe.analysis.summaries import with_speedups
from specmoe.config.schema import Statistics

from ..paper_analyses import BASELINE_RATE, full, with_categories
from .test_summaries import run

SETTINGS = Statistics()


def compared(logs_of_category, blocks=3):
    """Return runs whose speedups are these, by category a log for each prompt."""
    rows = []
    for category, logs in logs_of_category.items():
        for number, log in enumerate(logs):
            for block in range(blocks):
                name = f"{category}{number}/{block}"
                common = {
                    **{"suite": "B", "block": f"B/t/d/r{block}", "prompt": f"{category}{number}"},
                    **{"workload": "mine", "category": category, "past_end": 16.0},
                    **{"stop": "length", "stopped_by": "length", "tokens": [*range(64)]},
                }
                rate = BASELINE_RATE * exp(log + 0.01 * block)
                drafted = {"draft": "d", "gamma": 4, "baseline": f"{name}/0"}
                rows.append(run(f"{name}/0", BASELINE_RATE, **common))
                rows.append(run(f"{name}/4", rate, **common, **drafted))
    return pd.DataFrame(rows)


def test_the_interval_of_a_category_is_that_over_its_prompts():
    runs = with_speedups(compared({"code": [0.1, 0.3, 0.5], "prose": [-0.2, -0.1]}))
    cells = compare_categories(runs, SETTINGS).set_index("category")
    assert cells["prompts"].to_dict() == {"code": 3, "prose": 2}
    code = runs[runs["category"] == "code"]
    expected = interval_over_prompts(code, SETTINGS.confidence)
    assert tuple(cells.loc["code", ["speedup_low", "speedup_high"]]) == pytest.approx(expected)
    # Three prompts that differ by 0.2 are a small sample.
    assert expected.high > exp(0.3 + 0.2)
    assert cells.loc["code", "speedup"] == pytest.approx(exp(0.3 + 0.01))


def test_prompts_without_a_category_have_no_row_and_a_category_of_one_prompt_has_no_pair():
    runs = compared({"code": [0.1, 0.2]}).assign(category=None)
    assert compare_categories(with_speedups(runs), SETTINGS).empty
    assert gaps_between_categories(with_speedups(runs), SETTINGS).empty
    single = with_speedups(compared({"code": [0.5, 0.51], "prose": [0.0]}))
    assert gaps_between_categories(single, SETTINGS).empty


def test_a_gap_between_categories_is_shown_where_prompts_agree_and_not_where_they_scatter():
    apart = compared({"code": [0.5, 0.51, 0.52], "prose": [0.0, 0.01, 0.02]})
    [gap] = gaps_between_categories(with_speedups(apart), SETTINGS).to_dict("records")
    assert (gap["higher"], gap["lower"], gap["pairs"]) == ("code", "prose", 1)
    assert gap["ratio"] == pytest.approx(exp(0.5))
    assert 1 < gap["ratio_low"] < exp(0.5) < gap["ratio_high"]
    scattered = compared({"code": [0.5, -0.5, 0.9], "prose": [0.0, 0.8, -0.6]})
    [none] = gaps_between_categories(with_speedups(scattered), SETTINGS).to_dict("records")
    assert np.isnan(none["ratio"])


def test_gaps_stand_in_order_and_each_allows_for_all_pairs():
    logs = {"a": [0.0, 0.01, 0.02], "b": [0.3, 0.31, 0.32], "c": [0.9, 0.91, 0.92]}
    runs = with_speedups(compared(logs))
    gaps = gaps_between_categories(runs, SETTINGS)
    assert (gaps["higher"] + gaps["lower"]).tolist() == ["ca", "cb", "ba"]
    c, a = (runs[runs["category"] == name] for name in "ca")
    wider = ratio_of_prompts(c, a, 1 - 0.05 / 3)
    assert gaps["ratio_low"].iloc[0] == pytest.approx(wider.low)
    assert wider.low < ratio_of_prompts(c, a, 0.95).low


def test_what_blocks_do_to_all_prompts_cancels_in_a_gap():
    logs = {"code": [0.5, 0.51], "prose": [0.0, 0.01]}
    few, many = (with_speedups(compared(logs, blocks=count)) for count in (1, 9))
    ratios = [
        ratio_of_prompts(*(runs[runs["category"] == name] for name in logs), 0.95)
        for runs in (few, many)
    ]
    assert ratios[0] == pytest.approx(ratios[1])


def test_the_tokens_past_the_end_are_a_share_of_those_whose_end_is_known():
    runs = compared({"code": [0.1, 0.2]})
    runs.loc[runs["gamma"] == 4, "past_end"] = [16.0, 16.0, nan, 32.0, nan, nan]
    found = how_texts_end(runs).set_index("draft")
    assert found.loc["none", "past_end"] == pytest.approx(16 / 64)
    assert found.loc["d", "past_end"] == pytest.approx((16 + 16 + 32) / (3 * 64))
    assert found.loc["d", "past_end_runs"] == 3
    assert found.loc["d", "same_length"] == 1
    assert np.isnan(found.loc["none", "same_length"])


def test_texts_that_end_are_counted_with_those_that_end_at_once():
    runs = compared({"code": [0.1, 0.2]})
    alone = runs["gamma"] == 0
    runs.loc[alone, "stopped_by"] = ["eos", "eos", "length", "eos", "length", "length"]
    runs.loc[alone, "generated"] = [1, 10, 64, 64, 64, 64]
    found = how_texts_end(runs.assign(stop="eos")).set_index("draft").loc["none"]
    assert (found["ended"], found["at_once"], found["shortest"]) == (0.5, 1, 1)
    assert how_texts_end(runs.assign(workload=None, past_end=None)).empty
    cut = runs.assign(workload=None, prompt="passage-64")
    assert how_texts_end(cut).empty


def test_endings_of_texts_of_no_workload_have_no_speedup_of_their_own():
    analysis = with_categories()
    texts = analysis.endings.assign(workload=np.nan)
    assert replace(analysis, endings=texts).endings["speedup"].isna().all()


def test_texts_of_no_workload_are_counted_where_their_end_is_known():
    runs = compared({"code": [0.1, 0.2]}).assign(workload=None)
    assert (how_texts_end(runs)["past_end_runs"] > 0).all()
    assert len(how_texts_end(runs.assign(workload=None, stop="eos"))) == 2


def test_a_run_without_a_rate_has_no_speedup_and_spoils_none():
    runs = compared({"code": [0.1, 0.2]})
    runs.loc[runs["run"] == "code0/0/4", "tokens_per_second"] = nan
    runs.loc[runs["run"] == "code1/1/0", "tokens_per_second"] = nan
    found = with_speedups(runs)
    assert len(found) == 4
    assert found["speedup"].notna().all()


def test_the_advice_names_the_categories_that_gain_and_lose():
    analysis = with_categories()
    row = {"suite": "W", "target": "moe_q4", "draft": "draft_0.8b", "gamma": 4}
    said = describe_categories(row, analysis.categories, analysis.category_gaps)
    assert said[0].startswith("By category, with intervals for other prompts of each: code 1.5")
    assert said[1:3] == [
        "Faster than the target alone: code.",
        "Slower than the target alone: poems.",
    ]
    assert said[3].startswith("Categories differ: code gains 1.8")
    assert (
        describe_categories(row | {"gamma": 8}, analysis.categories, analysis.category_gaps) == []
    )


def test_the_advice_in_json_has_the_categories_of_each_target():
    analysis = replace(
        with_categories(),
        advice=pd.DataFrame([{"target": "moe_q4"}]).reindex(columns=TABLES["advice"].columns),
    )
    [target] = advice_values(analysis)["targets"]
    assert [one["category"] for one in target["by_category"]] == ["code", "poems"]


def test_a_campaign_without_workloads_says_nothing_of_categories():
    assert full().categories.empty
    assert full().endings.empty
    assert "categor" not in describe_advice(full())


def test_the_table_of_endings_has_the_speedup_beside_what_was_forced():
    alone, drafted = with_categories().endings.to_dict("records")
    assert pd.isna(alone["draft_label"])
    assert drafted["draft_label"] == "Draft 0.8B"
    assert drafted["past_end"] == 0.5
    assert drafted["speedup"] == pytest.approx(np.sqrt(1.5 * 0.8), rel=0.05)
    assert drafted["repetition"] == pytest.approx(46 / 97)  # of its last 50 tokens, all alike
