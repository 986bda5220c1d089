"""Summaries by hand, and what must hold of any."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.analysis.intervals import interval_of_speedup
from specmoe.analysis.summaries import (
    geometric_mean,
    summarise_baselines,
    summarise_cells,
    with_speedups,
)
from specmoe.config.schema import Statistics

from ..paper_analyses import _row as row_of

SETTINGS = Statistics()


def run(name, rate, *, draft="none", gamma=0, prompt="passage-64", repeat=0, baseline=None, **more):
    counts = {"rounds": 10, "drafted": 40, "accepted": 20, "replays": 5, "replays_rejected": 1}
    times = {"n_prompt": 64, "prompt_ms": 32.0, "decode_ms": 63_000 / rate}
    names = {"run": name, "block": f"{draft}/g{gamma}/r{repeat}", "baseline": baseline}
    row = row_of("A" if draft == "none" else "B", "t", draft, gamma, prompt, repeat, rate)
    return row | counts | times | names | dict.fromkeys(["generated", "common_prefix"], 64) | more


@pytest.fixture
def runs():
    return pd.DataFrame(
        [
            run("a0", 10.0, repeat=0),
            run("a1", 20.0, repeat=1),
            run("s0", 20.0, draft="d", gamma=4, repeat=0, baseline="a0"),
            run("s1", 10.0, draft="d", gamma=4, repeat=1, baseline="a1", accepted=10),
        ]
    )


def cells_of(runs):
    """Return the cells as records."""
    return summarise_cells(with_speedups(runs), SETTINGS).to_dict("records")


@pytest.mark.parametrize("baseline", [None, "not among the runs"])
def test_a_run_without_baseline_beside_others_that_have_one_has_no_speedup(runs, baseline):
    runs.loc[3, "baseline"] = baseline
    assert with_speedups(runs)["run"].tolist() == ["s0"]


def test_a_suite_without_any_baseline_is_compared_with_the_targets_mean(runs):
    runs["baseline"] = None
    compared = with_speedups(runs)
    assert compared["speedup"].tolist() == [20 / 15, 10 / 15]
    assert not compared["paired"].any()


def test_suites_with_and_without_baselines_can_be_mixed(runs):
    other = run("u0", 30.0, draft="d", gamma=4, suite="D")
    compared = with_speedups(pd.concat([runs, pd.DataFrame([other])]))
    assert compared["run"].tolist() == ["s0", "s1", "u0"]
    assert compared["paired"].tolist() == [True, True, False]
    assert compared["speedup"].tolist() == [2.0, 0.5, 2.0]


def test_a_suite_without_baselines_of_a_target_without_any_has_no_speedup(runs):
    runs["baseline"] = None
    runs.loc[[0, 1], "prompt"] = "code"
    assert with_speedups(runs).empty


@given(rates=st.lists(st.floats(1, 100), max_size=5))
def test_paired_runs_do_not_change_with_what_else_was_measured(rates):
    paired = pd.DataFrame(
        [
            run("a0", 10.0),
            run("s0", 12.0, draft="d", gamma=4, baseline="a0"),
            *(run(f"x{index}", rate) for index, rate in enumerate(rates)),
        ]
    )
    [row] = with_speedups(paired).to_dict("records")
    assert (row["baseline_tokens_per_second"], row["speedup"]) == (10.0, 12.0 / 10.0)


def test_unknown_prefixes_and_rounds_give_nulls_in_a_cell(runs):
    runs["baseline"] = None
    runs = runs.assign(common_prefix=pd.NA, rounds=pd.NA)
    [cell] = cells_of(runs)
    assert not cell["paired"]
    for column in ("identical", "common_prefix_min", "mean_accepted_length", "tokens_per_round"):
        assert np.isnan(cell[column])
    assert cell["acceptance_rate"] == 30 / 80


def test_a_cell_is_summarised_as_by_hand(runs):
    [cell] = cells_of(runs)
    assert cell["runs"] == cell["blocks"] == 2
    assert cell["tokens_per_second"] == 15.0
    assert cell["tokens_per_second_sd"] == pytest.approx(np.sqrt(50))
    assert cell["paired"]
    assert cell["acceptance_rate"] == 30 / 80
    assert cell["mean_accepted_length"] == 1 + 30 / 20
    assert cell["tokens_per_round"] == 1 + 30 / 20 + 8 / 20
    assert cell["rounds_per_run"] == 10
    assert cell["round_ms"] == pytest.approx((63_000 / 20 + 63_000 / 10) / 20)
    assert cell["baseline_tokens_per_second"] == 15.0
    assert cell["speedup"] == pytest.approx(1.0)  # twice and half
    assert cell["speedup_unpaired"] == 1.0  # 15 / 15
    assert cell["identical"] == 1.0


def test_the_papers_acceptance_rate_is_the_mean_over_runs_whatever_they_drafted(runs):
    runs.loc[3, ["accepted", "drafted"]] = 20
    [cell] = cells_of(runs)
    assert (cell["acceptance_rate_mean"], cell["acceptance_rate"]) == (0.75, 40 / 60)


def test_the_papers_baseline_is_the_mean_over_prompt_lengths_and_repeats(runs):
    [baseline] = summarise_baselines(runs, SETTINGS).to_dict("records")
    assert baseline["tokens_per_second"] == 15.0
    assert baseline["prompt_tokens_per_second"] == 2000.0
    assert baseline["runs"] == 2
    with_text = runs.assign(prompt=["passage-64", "code", "code", "code"])
    assert summarise_baselines(with_text, SETTINGS)["tokens_per_second"].tolist() == [10.0]


def test_baselines_of_a_sweep_are_in_the_papers_denominator_and_not_in_its_table(runs):
    sweep = pd.DataFrame([run("f0", 30.0, suite="F"), run("f1", 30.0, suite="F", draft="d")])
    runs = pd.concat([runs, sweep])
    assert summarise_baselines(runs, SETTINGS)["tokens_per_second"].tolist() == [15.0]
    assert set(with_speedups(runs)["mean_baseline_tokens_per_second"]) == {20.0}


def test_a_target_without_the_papers_baseline_has_no_unpaired_speedup(runs):
    runs.loc[[0, 1], "prompt"] = "code"
    [cell] = cells_of(runs)
    assert np.isnan(cell["speedup_unpaired"])
    assert cell["speedup"] > 0


def test_a_drafts_reading_of_the_prompt_delays_the_first_token_and_the_whole_answer(runs):
    # Of 3.15 s and 6.3 s a baseline decodes; its prompt takes 1 s, the run's 1.5 s.
    times = {"a0": 1000.0, "a1": 1000.0, "s0": 1500.0, "s1": 1500.0}
    runs["prompt_ms"] = runs["run"].map(times)
    compared = with_speedups(runs)
    assert compared["first_token_ratio"].tolist() == [1.5, 1.5]
    assert compared["end_to_end"].tolist() == pytest.approx([7.3 / 4.65, 4.15 / 7.8])
    [cell] = cells_of(runs)
    assert cell["first_token_ratio"] == cell["first_token_ratio_low"] == pytest.approx(1.5)
    assert cell["end_to_end"] == pytest.approx(np.sqrt(7.3 / 4.65 * 4.15 / 7.8))
    assert cell["end_to_end_low"] < cell["end_to_end"] < cell["end_to_end_high"]


def test_a_cell_with_an_unknown_prompt_time_has_no_time_to_the_first_token(runs):
    runs.loc[3, "prompt_ms"] = None
    [cell] = cells_of(runs)
    assert np.isnan([cell["first_token_ratio"], cell["end_to_end"], cell["end_to_end_low"]]).all()
    assert cell["speedup"] > 0


def test_a_method_that_never_drafts_has_a_speedup_and_null_counts_by_round(runs):
    never = {"rounds": 0, "drafted": 0, "accepted": 0, "replays": 0, "replays_rejected": 0}
    drafted = runs["draft"] == "d"
    runs.loc[drafted, list(never)] = list(never.values())
    [cell] = cells_of(runs)
    by_round = ["acceptance_rate", "mean_accepted_length", "tokens_per_round"]
    by_round += ["replays_per_round", "round_ms"]
    assert np.isnan([cell[column] for column in by_round]).all()
    assert cell["rounds_per_run"] == 0
    assert cell["speedup"] > 0


def test_the_interval_of_a_rate_without_a_draft_is_over_its_blocks(runs):
    runs = pd.concat([runs, pd.DataFrame([run("o", 5.0) | {"target": "once"}])])
    rows = summarise_baselines(runs, SETTINGS).set_index("target")
    ends = ["tokens_per_second_low", "tokens_per_second_high"]
    # The logarithms of 10 and 20 differ by log 2; t with one degree of freedom is 12.706.
    reach = 12.7062 * np.log(2) / 2
    middle = np.log(10 * 20) / 2
    assert rows.loc["t", ends].tolist() == pytest.approx(
        [np.exp(middle - reach), np.exp(middle + reach)], rel=1e-3
    )
    assert rows.loc["once", ends].isna().all()  # one block


ratios = st.lists(st.floats(0.1, 10), min_size=2, max_size=6)


@given(speedups=ratios, factor=st.floats(0.1, 10))
def test_an_interval_has_the_blocks_mean_in_its_middle_and_scales(speedups, factor):
    pairs = pd.DataFrame({"speedup": speedups, "block": range(len(speedups)), "prompt": "p"})
    low, high = interval_of_speedup(pairs, 0.95)
    mean = geometric_mean(np.array(speedups))
    assert np.sqrt(low * high) == pytest.approx(mean)
    scaled = pairs.assign(speedup=pairs["speedup"] * factor)
    assert interval_of_speedup(scaled, 0.95) == pytest.approx((low * factor, high * factor))
