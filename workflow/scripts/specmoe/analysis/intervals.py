"""Intervals: bootstraps over blocks, over blocks and prompts, and over all settings at once.

The block is the unit of repetition, so the intervals of tables and figures draw whole blocks. They
never draw prompts: they are about the prompts that were sent, and every block sends the same ones.
A practitioner sends other texts, and picks the best of many settings. Both make an interval wider;
`interval_over_prompts` and `joint_intervals` allow for them.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.config.schema import Statistics


class Interval(NamedTuple):
    """Both ends of an interval; NaN where there is none."""

    low: float
    high: float


NO_INTERVAL = Interval(float("nan"), float("nan"))


def percentile_interval(values: np.ndarray, confidence: float, method: str = "linear") -> Interval:
    """Return the interval that leaves out the same share of values at both ends.

    `method` is `numpy.quantile`'s.
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail], method=method)  # type: ignore[call-overload]
    return Interval(float(low), float(high))


def bootstrap_interval(compared: pd.DataFrame, settings: Statistics) -> Interval:
    """Return the percentile-bootstrap interval of the geometric mean speedup over blocks.

    `compared` is `summaries.with_speedups`'s frame. Whole blocks are drawn with replacement. Both
    ends are NaN with a single block, which has no spread to draw from. With few blocks (three give
    10 distinct draws) the interval spans about their range and is narrower than its nominal
    confidence.
    """
    low, high = interval_of_mean(np.log(compared["speedup"]), compared["block"], settings)
    return Interval(float(np.exp(low)), float(np.exp(high)))


def interval_of_mean(values: pd.Series, blocks: pd.Series, settings: Statistics) -> Interval:
    """Return the percentile-bootstrap interval of a mean over blocks; NaN with a single block."""
    if blocks.nunique() < 2:
        return NO_INTERVAL
    means = _resampled_means(values, blocks, settings, np.random.default_rng(settings.seed))
    return percentile_interval(means, settings.confidence)


def interval_of_ratio(
    compared: pd.DataFrame, reference: pd.DataFrame, settings: Statistics
) -> Interval:
    """Return the percentile-bootstrap interval of one cell's geometric mean speedup over another's.

    The blocks of each cell are drawn independently; NaN where a cell has a single block.
    """
    if min(frame["block"].nunique() for frame in (compared, reference)) < 2:
        return NO_INTERVAL
    generator = np.random.default_rng(settings.seed)
    means, others = (
        _resampled_means(np.log(frame["speedup"]), frame["block"], settings, generator)
        for frame in (compared, reference)
    )
    return percentile_interval(np.exp(means - others), settings.confidence)


def joint_intervals(cells: Mapping[str, pd.DataFrame], settings: Statistics) -> dict[str, Interval]:
    """Return intervals of the cells' speedups that hold for all of them at once.

    `cells` has the rows of `with_speedups` of each cell. The best of many cells is partly the
    luckiest. An interval that holds for all cells together also holds for the one that is picked,
    so each is as wide as the largest error that any cell makes in a resample.

    Errors are drawn from the deviations of all cells' blocks from their own cell's mean, scaled up
    by √(n / (n - 1)) for the degree of freedom that each mean takes: three blocks alone are too few
    to draw from. This assumes that the cells of one target spread alike, which the table `spread`
    shows. Errors of cells that share baselines are correlated; drawn independently, as here, the
    largest error comes out too large rather than too small. No interval is narrower than the cell's
    own. Cells with a single block have none.
    """
    blocks = {
        name: _logs(members).groupby(members["block"]).mean().to_numpy()
        for name, members in cells.items()
    }
    intervals = dict.fromkeys(cells, NO_INTERVAL)
    repeated = {name: means for name, means in blocks.items() if len(means) > 1}
    if not repeated:
        return intervals
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
    over = percentile_interval(errors.max(axis=1), settings.confidence).high
    under = percentile_interval(errors.min(axis=1), settings.confidence).low
    for name, means in repeated.items():
        own = bootstrap_interval(cells[name], settings)
        low, high = (float(np.exp(means.mean() - error)) for error in (over, under))
        intervals[name] = Interval(min(low, own.low), max(high, own.high))
    return intervals


def interval_over_prompts(compared: pd.DataFrame, settings: Statistics) -> Interval:
    """Return the interval of a cell's speedup for other prompts of the same kind.

    Blocks and prompts are crossed, since every block sends every prompt; a resample draws both,
    each with replacement (the pigeonhole bootstrap of A. B. Owen, Annals of Applied Statistics 1,
    2007, which errs on the wide side). Four prompts are a small sample of all prompts, and the
    interval cannot know more than they do. Both ends are NaN with a single block or prompt.
    """
    table = _logs(compared).groupby([compared["block"], compared["prompt"]]).mean().unstack()
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
    # A resample may hold only pairs of block and prompt that were not measured.
    means = totals[counts > 0] / counts[counts > 0]
    low, high = percentile_interval(means, settings.confidence)
    return Interval(float(np.exp(low)), float(np.exp(high)))


def _logs(compared: pd.DataFrame) -> "pd.Series[float]":
    return compared["speedup"].astype(float).map(math.log)


def _resampled_means(
    values: pd.Series, blocks: pd.Series, settings: Statistics, generator: np.random.Generator
) -> np.ndarray:
    grouped = values.astype(float).groupby(blocks)
    sums, sizes = grouped.sum().to_numpy(), grouped.size().to_numpy()
    drawn = generator.integers(len(sums), size=(settings.resamples, len(sums)))
    means: np.ndarray = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means
