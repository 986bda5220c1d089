"""How many repeats would decide whether a target gains, and the line that measures them."""

import math
import shlex
from collections.abc import Iterable

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import joint_quantile
from specmoe.analysis.spread import FEWEST_REPEATS
from specmoe.config.schema import Statistics


def repeats_to_decide(settings: pd.DataFrame, statistics: Statistics) -> int | None:
    """Return with how many repeats of all settings the advice would be *on* or *off*.

    `settings` are those of one target and set of prompts, with speedup, blocks and block_sd (of the
    logarithm). Speedups and spreads are assumed to stay as they are, so it is a guess: at the least
    number that decides, the true mean has about an even chance to be as far from 1 as needed. A
    gain is decided by any one setting, a loss by all. None if it takes more than
    `statistics.repeats_limit`, or if no spread is known.
    """
    distances = np.log(settings["speedup"].to_numpy(float))
    spreads = settings["block_sd"].to_numpy(float, na_value=np.nan)
    if np.isnan(spreads).all():
        return None
    deviations = np.fmax(spreads, math.sqrt(np.nanmean(spreads**2)))
    first = max(FEWEST_REPEATS, int(settings["blocks"].max()) + 1)
    for repeats in range(first, statistics.repeats_limit + 1):
        quantile = joint_quantile(repeats, len(settings), statistics.confidence)
        reaches = quantile * deviations / math.sqrt(repeats)
        if (distances > reaches).any() or (distances < -reaches).all():
            return repeats
    return None


def measuring_line(comparisons: Iterable[str], repeats: int) -> str:
    """Return the line that brings comparisons to so many repeats, and advises again."""
    keys = ", ".join(f"{comparison}: {repeats}" for comparison in sorted(set(comparisons)))
    wanted = shlex.quote(f"measurement={{more_repeats: {{{keys}}}}}")
    return f"snakemake --cores 1 advise --configfile <those of this campaign> --config {wanted}"
