"""Sittings: the stretches of time in which a campaign was measured, and what another would give.

What a machine does besides, its clock and its neighbours are alike for hours, and another day's are
others, for all settings at once. Blocks of one sitting therefore say how sure the speedup of that
sitting is, and not what the next one gives. From FEWEST_SITTINGS on, a comparison's sittings are
what varies. With fewer, intervals are of these sittings, and advice
allows for `statistics.sitting_spread`, which the configuration states. `tests/planted_sittings.py`
shows how often either holds the truth.
"""

from collections.abc import Mapping
from math import expm1
from typing import Any

import pandas as pd

from specmoe.analysis.intervals import MANY, student_quantile
from specmoe.config.matrix import comparison_of
from specmoe.config.measurement import Measurement

# Two give Student's t one degree of freedom: 12.7 standard errors on each side say nothing.
FEWEST_SITTINGS = 3


def sittings_of(runs: pd.DataFrame, gap_h: float) -> "pd.Series[int]":
    """Return the number of each block's sitting, from 0 in order of time, by the block's id.

    A block that begins more than `gap_h` hours after the last run before it begins a sitting.
    """
    spans = runs.groupby("block")["started_at"].agg(["min", "max"]).sort_values("min")
    idle = spans["min"] - spans["max"].cummax().shift()
    return (idle > pd.Timedelta(hours=gap_h)).astype(int).cumsum()


def by_sitting(runs: pd.DataFrame, sittings: "pd.Series[int]") -> pd.DataFrame:
    """Return runs with their sitting, in which a comparison's blocks of one are a single block.

    Comparisons of fewer than FEWEST_SITTINGS keep their blocks.
    """
    several = sittings.groupby(comparison_of).transform("nunique") >= FEWEST_SITTINGS
    sitting = runs["block"].map(sittings)
    joined = joined_blocks(runs, sitting.map("s{}".format))
    keys = ["block", "pass"]
    whole = joined[keys].where(runs["block"].map(several), runs[keys])
    return runs.assign(sitting=sitting, **whole)


def joined_blocks(runs: pd.DataFrame, unit: pd.Series) -> pd.DataFrame:
    """Return runs in which all blocks of a comparison in one unit are a single block.

    Whatever takes intervals over blocks then takes them over units. Passes are numbered through
    the repeats of a unit, as further passes of its block.
    """
    passes = max(runs["pass"], default=0) + 1
    block = runs["block"].map(comparison_of) + "/" + unit
    return runs.assign(block=block, **{"pass": runs["repeat"] * passes + runs["pass"]})


def another_sitting(measurement: Measurement, sittings: int) -> dict[str, Any]:
    """Return the repeats of `measurement` after one sitting more, as long as those before."""

    def more(repeats: int) -> int:
        return repeats + max(1, repeats // sittings)

    asked = sorted(measurement.more_repeats.items())
    return {
        "repeats": more(measurement.repeats),
        "more_repeats": {name: more(count) for name, count in asked},
    }


def sitting_variance(compared: pd.DataFrame, spread: float) -> float:
    """Return the variance of a mean logarithm that other sittings add; 0 where sittings vary.

    `compared` is a cell of `by_sitting`, `spread` the deviation between the logarithms of two
    sittings' speedups.
    """
    shares = compared.drop_duplicates("block")["sitting"].value_counts(normalize=True)
    return 0.0 if len(shares) >= FEWEST_SITTINGS else spread**2 * float((shares**2).sum())


def sitting_reach(campaign: Mapping[str, Any]) -> float:
    """Return how far one sitting's speedup may be from another's, as a share of it.

    `campaign` is the row of `Analysis.campaign`.
    """
    quantile = student_quantile(MANY, campaign["confidence"])
    return expm1(quantile * campaign["sitting_spread"])


def sittings_vary(campaign: Mapping[str, Any]) -> bool:
    """Return whether intervals are over sittings, where a comparison has all of a campaign's."""
    return bool(campaign["sittings"] >= FEWEST_SITTINGS)
