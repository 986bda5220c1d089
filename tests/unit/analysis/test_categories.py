"""By category: speedups with intervals over prompts."""

from math import exp, nan

import pandas as pd
import pytest

from specmoe.analysis.intervals import mean_on_other_prompts
from specmoe.analysis.summaries import make_pairs, summarise_categories
from specmoe.config.schema import Statistics

from ..paper_analyses import BASELINE_RATE
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
                    **{"workload": "mine", "category": category},
                    **{"stop": "length", "stopped_by": "length", "tokens": [*range(64)]},
                }
                rate = BASELINE_RATE * exp(log + 0.01 * block)
                drafted = {"draft": "d", "gamma": 4, "baseline": f"{name}/0"}
                rows.append(run(f"{name}/0", BASELINE_RATE, **common))
                rows.append(run(f"{name}/4", rate, **common, **drafted))
    return pd.DataFrame(rows)


def pairs_of(runs):
    return make_pairs(runs, [], {})


def test_the_interval_of_a_category_is_that_over_its_prompts():
    runs = pairs_of(compared({"code": [0.1, 0.3, 0.5], "prose": [-0.2, -0.1]}))
    settings = summarise_categories(runs, SETTINGS).set_index("category")
    assert settings["prompts"].to_dict() == {"code": 3, "prose": 2}
    code = runs[runs["category"] == "code"]
    expected = mean_on_other_prompts(code).interval(SETTINGS.confidence)
    assert tuple(settings.loc["code", ["speedup_low", "speedup_high"]]) == pytest.approx(expected)
    # Three prompts that differ by 0.2 are a small sample.
    assert expected.high > exp(0.3 + 0.2)
    assert settings.loc["code", "speedup"] == pytest.approx(exp(0.3 + 0.01))


def test_prompts_without_a_category_have_no_row():
    runs = compared({"code": [0.1, 0.2]}).assign(category=None)
    assert summarise_categories(pairs_of(runs), SETTINGS).empty


def test_a_run_without_a_rate_has_no_speedup_and_spoils_none():
    runs = compared({"code": [0.1, 0.2]})
    runs.loc[runs["run"] == "code0/0/4", "tokens_per_second"] = nan
    runs.loc[runs["run"] == "code1/1/0", "tokens_per_second"] = nan
    found = pairs_of(runs)
    assert len(found) == 4
    assert found["speedup"].notna().all()
