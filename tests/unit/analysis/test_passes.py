"""The advised passes are those that give a mean its precision in the least time."""

import math

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.passes import MOST_PASSES, cheapest_passes, passes_that_pay
from specmoe.analysis.summaries import with_speedups
from specmoe.analysis.terminal import describe_passes

from .test_summaries import run as made


def campaign(between, run, *, seed, blocks=40, prompts=4, passes=2):
    """Return planted runs: blocks share an error, and each run has one of its own."""
    generator = np.random.default_rng(seed)
    rows = []
    for block in range(blocks):
        shared = generator.normal(0, between)
        for number in range(passes):
            for prompt in range(prompts):
                at = {"suite": "S", "prompt": f"p{prompt}", "pass": number, "decode_ms": 9.0}
                at |= {"block": f"S/t/d/r{block}", "prompt_ms": 1.0, "start_ms": 30.0}
                name, noise = f"{block}/{number}/{prompt}", shared + generator.normal(0, run)
                drafted = {"draft": "d", "gamma": 4, "baseline": name}
                rows.append(made(name, 100.0, **at))
                rows.append(made(f"{name}/d", 100 * math.exp(noise), **at, **drafted))
    return pd.DataFrame(rows).assign(warm_up_ms=10.0)


def advised(*args, **kwargs):
    runs = campaign(*args, **kwargs)
    [row] = passes_that_pay(runs, with_speedups(runs)).to_dict("records")
    return row


def test_planted_spreads_are_found_and_noise_is_not_counted_as_spread_between_blocks():
    found = [advised(0.02, 0.04, seed=seed) for seed in range(20)]
    assert np.mean([one["between_sd"] for one in found]) == pytest.approx(0.02, rel=0.15)
    assert np.mean([one["run_sd"] for one in found]) == pytest.approx(0.04, rel=0.05)
    assert {one["passes"] for one in found} == {2}


def test_times_are_of_a_block_and_of_one_pass():
    row = advised(0.02, 0.04, seed=1)
    assert row["block_ms"] == pytest.approx(2 * 40)
    assert row["pass_ms"] == pytest.approx(2 * 4 * 10)


def test_the_advised_passes_cost_least_among_all():
    between, within, block_ms, pass_ms = 0.02**2, 0.04**2, 80.0, 80.0
    chosen = cheapest_passes(between, within, block_ms, pass_ms)
    assert chosen == round(math.sqrt(block_ms / pass_ms * within / between))

    def blocks_for(sd, passes):
        return (between + within / passes) / sd**2

    times = {p: blocks_for(0.01, p) * (block_ms + p * pass_ms) for p in range(1, MOST_PASSES + 1)}
    assert min(times, key=lambda passes: times[passes]) == chosen


@pytest.mark.parametrize(
    ("between", "within", "passes"), [(0.0, 0.01, MOST_PASSES), (0.01, 0.0, 1)]
)
def test_without_a_spread_between_blocks_passes_pay_and_without_noise_they_do_not(
    between, within, passes
):
    assert cheapest_passes(between, within, 80, 80) == passes


def test_one_block_or_one_run_a_block_gives_no_advice():
    assert pd.isna(advised(0.02, 0.04, seed=1, blocks=1)["passes_that_pay"])
    assert pd.isna(advised(0.02, 0.04, seed=1, prompts=1, passes=1)["passes_that_pay"])


def test_the_text_names_the_median_of_the_passes_that_pay_and_is_empty_without_a_spread():
    runs = campaign(0.02, 0.04, seed=1)
    table = passes_that_pay(runs, with_speedups(runs))
    median = round(float(table["passes_that_pay"].median()))
    assert f"measurement.passes = {median}" in describe_passes(table)
    alone = campaign(0.02, 0.04, seed=1, blocks=1)
    assert describe_passes(passes_that_pay(alone, with_speedups(alone))) == ""
