"""Quantiles of the times that one waits, and how often their intervals hold the truth."""

import math

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.latency import (
    Time,
    curves_between_tokens,
    interval_of_quantile,
    latency_of_cells,
    observe,
    quantile,
)
from specmoe.config.schema import Statistics

from ...planted_waits import coverage
from .test_summaries import run


def observed(times, blocks=1):
    """Return times of as many blocks, one block's after the other's."""
    return pd.DataFrame(
        {"ms": np.asarray(times, float), "block": np.arange(len(times)) * blocks // len(times)}
    )


def cell(gaps, *, runs=4, alone=(10.0,) * 64):
    """Return runs with a draft and their baselines, whose tokens have these times between them."""
    rows = []
    for repeat in range(runs):
        for name, between, more in (
            (f"a{repeat}", alone, {}),
            (f"s{repeat}", gaps, {"draft": "d", "gamma": 4, "baseline": f"a{repeat}"}),
        ):
            times = 100.0 + np.cumsum([0, *between])
            rows.append(
                run(name, 1000 / np.mean(between), repeat=repeat, **more)
                | {"prompt_ms": 100.0, "decode_ms": float(sum(between)), "token_ms": times}
            )
    return pd.DataFrame(rows)


def by_time(runs):
    """Return the rows of a single cell by their time."""
    return latency_of_cells(runs, Statistics()).set_index("time")


def test_tokens_of_a_round_are_no_time_apart_and_arrive_as_one():
    rows = by_time(cell([0, 0, 0, 40] * 16, runs=8))
    tokens, arrivals = rows.loc[Time.BETWEEN_TOKENS], rows.loc[Time.BETWEEN_ARRIVALS]
    assert (tokens["observations"], arrivals["observations"]) == (512, 128)
    assert (tokens["p50"], tokens["p90"]) == (0, 40)
    assert (tokens["baseline_p50"], tokens["baseline_p90"]) == (10, 10)


def test_times_of_runs_need_no_stream():
    unstreamed = cell([20] * 10, runs=100).assign(token_ms=None)
    rows = by_time(unstreamed)
    assert list(rows.index) == [Time.FIRST, Time.MEAN, Time.WHOLE]
    assert list(rows["p50"]) == [100, 20, 300]
    assert list(rows["baseline_p90"]) == [100, 10, 740]
    assert rows["p99"].isna().all()
    assert by_time(cell([20] * 10, runs=99).assign(token_ms=None)).empty
    assert curves_between_tokens(unstreamed).empty


def test_a_quantile_has_ten_observations_beyond_it():
    for share, needed in ((0.5, 20), (0.9, 100), (0.99, 1000)):
        assert math.isnan(quantile(observed(range(needed - 1)), share))
        assert quantile(observed(range(1, needed + 1)), share) == share * needed


def test_an_interval_needs_two_blocks_and_ends_among_the_observations():
    assert all(map(math.isnan, interval_of_quantile(observed(range(100)), 0.9, 0.95)))
    mixed = observed(range(100)).assign(block=np.arange(100) % 10)
    low, high = interval_of_quantile(mixed, 0.9, 0.95)
    assert low < 89 < high
    # Student's t of one degree takes the ends beyond all observations.
    assert all(map(math.isnan, interval_of_quantile(observed(range(100), 2), 0.9, 0.95)))


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("blocks", [4, 10])
def test_intervals_hold_the_truth_as_often_as_they_say(share, blocks):
    held, _ = coverage(share, blocks, 200, 200, np.random.default_rng(7))
    assert 0.91 <= held <= 0.995


def test_curves_have_a_target_alone_once_for_all_its_settings():
    first = cell([0, 20] * 8, runs=80)
    second = first.assign(gamma=first["gamma"].where(first["gamma"] == 0, 8))
    second["run"] = second["run"] + "g8"
    second["baseline"] = second["baseline"].map(lambda name: name and f"{name}g8")
    curves = curves_between_tokens(pd.concat([first, second]))
    found = curves[["draft", "gamma"]].drop_duplicates().to_numpy().tolist()
    assert found == [["none", 0], ["d", 4], ["d", 8]]
    alone = curves[curves["draft"] == "none"]
    assert len(alone) == 99
    assert alone["ms"].eq(10).all()
    drafted = curves[curves["gamma"] == 4].set_index("share")["ms"]
    assert (drafted[0.49], drafted[0.51]) == (0, 20)


def test_an_observation_keeps_its_block():
    seen = observe(cell([10, 30], runs=2), Time.BETWEEN_ARRIVALS)
    assert sorted(seen.groupby("block")["ms"].size()) == [2, 2, 64, 64]
