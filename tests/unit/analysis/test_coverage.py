"""How often intervals hold a planted truth; tests/benchmarks/interval_coverage.py has the table."""

import numpy as np
import pytest

from specmoe.analysis.intervals import joint_intervals

from ...planted_speedups import SPREADS, campaign, cover

TIMES = 150


@pytest.mark.parametrize(
    "spread, repeats, settings, tails",
    [("demo B", 3, 6, None), ("mechanism D", 5, 2, 3), ("true-shape R", 10, 2, None)],
)
def test_intervals_hold_the_truth_and_what_gains_nothing_is_not_switched_on(
    spread, repeats, settings, tails
):
    covered, advised = cover(
        SPREADS[spread], repeats, settings, tails=tails, times=TIMES, seed=repeats
    )
    # Three standard deviations of a share of 150 are 5 %.
    shares = {kind: one.share for kind, one in covered.items()}
    assert min(shares.values()) >= 0.9, shares
    assert advised.on <= 0.025 * TIMES + 3 * np.sqrt(0.025 * TIMES)
    assert advised.off <= advised.on + 3 * np.sqrt(0.025 * TIMES)


def test_a_gain_well_beyond_the_spread_is_switched_on_with_three_repeats():
    generator = np.random.default_rng(0)
    on = 0
    for _ in range(50):
        cells = campaign(generator, SPREADS["true-shape R"], 3, [0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
        joint = joint_intervals(dict(enumerate(cells)), 0.95)
        on += any(interval.low > 1 for interval in joint.values())
    assert on > 0.6 * 50
