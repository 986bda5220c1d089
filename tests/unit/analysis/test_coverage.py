"""How often intervals hold a planted truth; tests/benchmarks/interval_coverage.py has the table."""

import re
from dataclasses import astuple
from functools import partial

import numpy as np
import pytest

from specmoe.analysis.intervals import joint_intervals

from ...planted_disturbances import SPREAD, disturbed, marked, simulate
from ...planted_speedups import SPREADS, campaign, cover, errors

TIMES = 150


@pytest.mark.parametrize(
    "spread, repeats, settings, tails",
    [("synthetic B", 3, 6, None), ("mechanism D", 5, 2, 3), ("true-shape R", 10, 2, None)],
)
def test_intervals_hold_the_truth(spread, repeats, settings, tails):
    covered = cover(SPREADS[spread], repeats, settings, tails=tails, times=TIMES, seed=repeats)
    # Three standard deviations of a share of 150 are 5 %.
    shares = {kind: one.share for kind, one in covered.items()}
    assert min(shares.values()) >= 0.9, shares


@pytest.mark.parametrize("prompts, settings, times", [(4, 1, TIMES), (4, 6, 60), (50, 1, 60)])
def test_no_answer_is_wrong_more_often_than_its_level_says(prompts, settings, times):
    found = errors(SPREADS["synthetic D"], prompts, settings, times=times, seed=2)
    assert max(astuple(found)) <= 0.025 * times + 3 * np.sqrt(0.025 * times)


def test_the_supplement_prints_error_rates_that_such_campaigns_have(root):
    """Its rows are those of `interval_coverage.py --only answers`; this counts one again."""
    text = (root / "paper/supplement.tex").read_text()
    [body] = re.findall(r"% interval_coverage\.py --only answers.*?\n(.*?)\\bottomrule", text, re.S)
    rows = {tuple(row[:4]): row[4:] for row in (line.split(" & ") for line in body.splitlines())}
    assert len(rows) == 6
    rates = {key: [float(rate.strip(" \\")) for rate in row] for key, row in rows.items()}
    assert all(
        rate <= 2.5 + 100 * 3 * np.sqrt(0.025 / 1000) for row in rates.values() for rate in row
    )
    found = errors(SPREADS["synthetic B"], 4, 1, times=TIMES, seed=3)
    for count, rate in zip(astuple(found), rates["27", "16", "4", "1"], strict=True):
        assert abs(count - rate / 100 * TIMES) <= 1 + 3 * np.sqrt(0.025 * TIMES)


def test_a_gain_well_beyond_the_spread_is_switched_on_with_three_repeats():
    generator = np.random.default_rng(0)
    on = 0
    for _ in range(50):
        cells = campaign(generator, SPREADS["true-shape R"], 3, [0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
        joint = joint_intervals(dict(enumerate(cells)), 0.95)
        on += any(interval.low > 1 for interval in joint.values())
    assert on > 0.6 * 50


def test_without_disturbed_pairs_the_advised_speedup_holds_its_truth_in_a_narrower_interval():
    plant = partial(disturbed, share=0.05, factor=3.0)
    found = simulate(plant, ["all pairs", "pairs out"], repeats=3, prompts=4, times=60, seed=1)
    assert found["pairs out"].coverage >= 0.9
    assert abs(found["pairs out"].bias) < 0.02
    assert found["pairs out"].on <= 0.025 * 60 + 3 * np.sqrt(0.025 * 60)
    assert found["pairs out"].half_width < 0.6 * found["all pairs"].half_width


@pytest.mark.parametrize("of", ["fast", "slow"])
def test_marks_by_speed_switch_nothing_useless_on(of):
    def plant(_, cells):
        return marked(cells, share=0.002, of=of, spread=SPREAD)

    [found] = simulate(plant, ["the rule"], repeats=3, prompts=24, times=60, seed=1).values()
    assert found.coverage >= 0.9
    assert found.none < 0.2 * 60
    assert found.on <= 0.025 * 60 + 3 * np.sqrt(0.025 * 60)
