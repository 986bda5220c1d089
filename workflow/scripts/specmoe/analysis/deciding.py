"""How strict a look at a target is, how many repeats a second one takes, and the line for them.

Who reads *undecided* measures more and looks again, and so has a second chance of a wrong answer.
The level is shared out: the first look has most of it, because most campaigns get no other. The
second is planned by spreads and never by speedups. If its repeats were those at which the speedup
seen so far would decide, the chance would be taken that this speedup is luck. Both are needed for
wrong answers to stay as rare as `statistics.confidence` says (tests/planted_speedups.py).
"""

import math
import shlex
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from specmoe.analysis.intervals import joint_quantile
from specmoe.analysis.spread import FEWEST_REPEATS
from specmoe.config.matrix import comparison_of
from specmoe.config.measurement import Measurement
from specmoe.config.schema import Statistics

_SECOND_SHARE = 0.2  # of the level

_OF_CAMPAIGN = "--configfile <those of this campaign>"
NEXT_SITTING = f"snakemake --cores 1 another_sitting {_OF_CAMPAIGN}"
"""The line that says how to measure a campaign in another sitting."""


def is_second_look(blocks: Iterable[str], measurement: Measurement) -> bool:
    """Return whether more repeats were asked for of a comparison that has some of these blocks."""
    asked = (measurement.more_repeats.get(comparison_of(block), 0) for block in blocks)
    return max(asked, default=0) > measurement.repeats


def look_confidence(confidence: float, *, second: bool) -> float:
    """Return the level of one look, such that both together have `confidence`."""
    return 1 - (1 - confidence) * (_SECOND_SHARE if second else 1 - _SECOND_SHARE)


class SecondLook(NamedTuple):
    """A second look: its repeats, and the half-width of the intervals that it should have."""

    repeats: int
    width: float


def plan_second_look(settings: pd.DataFrame, statistics: Statistics) -> SecondLook | None:
    """Return the least repeats at which the advice's intervals are ± `statistics.least_gain`.

    `settings` are those of one target and set of prompts, with blocks and block_sd (of the
    logarithm), which are pooled. If `statistics.repeats_limit` repeats do not suffice, these are
    planned. None if they are there already, or if no spread is known.
    """
    deviation = math.sqrt((settings["block_sd"].astype(float) ** 2).mean())
    level = look_confidence(statistics.confidence, second=True)
    first = max(FEWEST_REPEATS, int(settings["blocks"].max()) + 1)
    plan = None
    for repeats in range(first, statistics.repeats_limit + 1):
        quantile = joint_quantile(repeats - 1, len(settings), level)
        plan = SecondLook(repeats, math.expm1(quantile * deviation / math.sqrt(repeats)))
        if plan.width <= statistics.least_gain:
            break
    return None if math.isnan(deviation) else plan


def measuring_line(comparisons: Iterable[str], repeats: int) -> str:
    """Return the line that brings comparisons to so many repeats, and advises again."""
    keys = ", ".join(f"{comparison}: {repeats}" for comparison in sorted(set(comparisons)))
    wanted = shlex.quote(f"measurement={{more_repeats: {{{keys}}}}}")
    return f"snakemake --cores 1 advise {_OF_CAMPAIGN} --config {wanted}"
