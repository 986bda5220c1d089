"""Bootstraps for questions that one cell's interval over its blocks does not answer.

The intervals of tables and figures draw whole blocks and never prompts (`statistics`): they are
about the prompts that were sent, every block sends the same ones, and so the choice of prompts adds
nothing to how far blocks differ. Whoever switches speculative decoding on will send other texts,
and picks the best of many settings; both make an interval wider, and here is by how much.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import bootstrap_interval
from specmoe.config.schema import Statistics


class Interval(NamedTuple):
    """Both ends of an interval of a speedup; NaN where there is none."""

    low: float
    high: float


NO_INTERVAL = Interval(float("nan"), float("nan"))


def joint_intervals(cells: Mapping[str, pd.DataFrame], settings: Statistics) -> dict[str, Interval]:
    """Return intervals of the cells' speedups that hold for all of them at once.

    `cells` has the rows of `with_speedups` of each. The best of many cells is partly the luckiest.
    An interval that holds for all cells together also holds for whichever is picked, so each is as
    wide as the largest error that any cell makes in a resample. Errors are drawn from the
    deviations of all cells' blocks from their own cell's mean, scaled up by √(n / (n - 1)) for the
    degree of freedom that each mean takes: three blocks alone are too few to draw from. This takes
    the cells of one target to spread alike, which the table `spread` shows. Errors of cells that
    share baselines go together; drawn independently, as here, the largest comes out too large
    rather than too small. No interval is narrower than the cell's own. Cells of one block have
    none.
    """
    blocks = {
        name: members["speedup"]
        .astype(float)
        .map(math.log)
        .groupby(members["block"])
        .mean()
        .to_numpy()
        for name, members in cells.items()
    }
    repeated = {name: means for name, means in blocks.items() if len(means) > 1}
    if not repeated:
        return dict.fromkeys(cells, NO_INTERVAL)
    pool = np.concatenate(
        [
            (means - means.mean()) * np.sqrt(len(means) / (len(means) - 1))
            for means in repeated.values()
        ]
    )
    generator = np.random.default_rng(settings.seed)
    errors = np.column_stack(
        [
            generator.choice(pool, size=(settings.resamples, len(means))).mean(axis=1)
            for means in repeated.values()
        ]
    )
    tail = (1 - settings.confidence) / 2
    over = float(np.quantile(errors.max(axis=1), 1 - tail))
    under = float(np.quantile(errors.min(axis=1), tail))
    intervals = dict.fromkeys(cells, NO_INTERVAL)
    for name, means in repeated.items():
        own = bootstrap_interval(cells[name], settings)
        low, high = (float(np.exp(means.mean() - error)) for error in (over, under))
        intervals[name] = Interval(min(low, own[0]), max(high, own[1]))
    return intervals


def interval_over_prompts(compared: pd.DataFrame, settings: Statistics) -> Interval:
    """Return the interval of a cell's speedup for other prompts of the same kind.

    Blocks and prompts are crossed, since every block sends every prompt; a resample draws both,
    each with replacement (the pigeonhole bootstrap of A. B. Owen, Annals of Applied Statistics 1,
    2007, which errs on the wide side). It can know no more than its prompts: four of them are a
    small sample. Both ends are NaN with a single block or prompt.
    """
    logs = compared["speedup"].astype(float).map(math.log)
    table = logs.groupby([compared["block"], compared["prompt"]]).mean().unstack()
    blocks, prompts = table.shape
    if min(blocks, prompts) < 2:
        return NO_INTERVAL
    values, known = table.fillna(0).to_numpy(float), table.notna().to_numpy(float)
    generator = np.random.default_rng(settings.seed)
    rows, columns = (
        generator.multinomial(count, np.full(count, 1 / count), size=settings.resamples)
        for count in (blocks, prompts)
    )
    totals = np.einsum("rb,bp,rp->r", rows, values, columns)
    counts = np.einsum("rb,bp,rp->r", rows, known, columns)
    # A resample of nothing but runs that failed says nothing.
    means = totals[counts > 0] / counts[counts > 0]
    tail = (1 - settings.confidence) / 2
    low, high = np.exp(np.quantile(means, [tail, 1 - tail]))
    return Interval(float(low), float(high))
