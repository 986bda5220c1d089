"""Intervals: Student's t on block means, for other prompts too, and for all settings at once.

The block is the unit of repetition: its runs share engine processes and minutes. An interval is
therefore Student's t on the means of blocks, of logarithms where the number is a ratio or a rate.
It is about the prompts that were sent, and every block sends the same ones. A practitioner sends
other texts, and picks the best of many settings. Both make an interval wider;
`interval_over_prompts` and `joint_intervals` allow for them.

`tests/benchmarks/interval_coverage.py` shows how often each kind holds the truth.
"""

import math
from collections.abc import Hashable, Mapping
from typing import NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from scipy.special import stdtrit

Name = TypeVar("Name", bound=Hashable)


class Interval(NamedTuple):
    """Both ends of an interval; NaN where there is none."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float

    def inverse(self) -> Self:
        """Return the estimate of a ratio's inverse."""
        return type(self)(1 / self.value, 1 / self.high, 1 / self.low)


NO_INTERVAL = Interval(math.nan, math.nan)


def student_quantile(degrees: float, confidence: float) -> float:
    """Return Student's two-sided t; `degrees` of freedom need not be whole."""
    # As scipy.stats.t.ppf, whose module takes a second to import.
    return float(stdtrit(degrees, (1 + confidence) / 2))


def block_means(values: "pd.Series[float]", blocks: pd.Series) -> "pd.Series[float]":
    """Return the mean of each block, by its id."""
    return values.astype(float).groupby(blocks).mean()


def interval_of_mean(values: "pd.Series[float]", blocks: pd.Series, confidence: float) -> Interval:
    """Return Student's interval of the mean over blocks; NaN with a single block."""
    return _student(block_means(values, blocks).to_numpy(), confidence)


def interval_of_speedup(compared: pd.DataFrame, confidence: float) -> Interval:
    """Return the interval of the geometric mean of the column `speedup` over blocks."""
    return interval_of_geometric_mean(compared["speedup"], compared["block"], confidence)


def interval_of_geometric_mean(
    ratios: "pd.Series[float]", blocks: pd.Series, confidence: float
) -> Interval:
    """Return Student's interval of the mean logarithm over blocks, as a ratio."""
    return _exponential(interval_of_mean(_logs(ratios), blocks, confidence))


def interval_of_rate(rates: "pd.Series[float]", blocks: pd.Series, confidence: float) -> Interval:
    """Return the interval of a rate, or of a time, over blocks.

    A block's rate is the arithmetic mean of its runs. The logarithms of the blocks' rates make the
    interval, so that it stays above 0 however few and unlike the blocks are.
    """
    means = np.log(block_means(rates, blocks).to_numpy())
    return _exponential(_student(means, confidence))


def ratio_of_speedups(
    compared: pd.DataFrame, reference: pd.DataFrame, confidence: float
) -> Estimate:
    """Return the speedup of a cell over that of another, with its interval.

    Both are rows of `with_speedups`. Cells that were measured in the same blocks share what a block
    does to all of its sides, so they are compared block by block: Student's t on the differences of
    the blocks' mean logarithms. Cells of different blocks are compared by Welch's t. The interval
    is NaN where a cell has a single block, or where both share a single one.
    """
    return ratio_of_means(log_speedups(compared), log_speedups(reference), confidence)


def log_speedups(compared: pd.DataFrame) -> dict[Hashable, float]:
    """Return the mean logarithm of the speedup in each block, by its id."""
    return block_means(_logs(compared["speedup"]), compared["block"]).to_dict()


def ratio_of_means(
    own: Mapping[Hashable, float], other: Mapping[Hashable, float], confidence: float
) -> Estimate:
    """Return what `ratio_of_speedups` does, of two cells' `log_speedups`.

    Advice compares every cell with every other, so this takes mappings: a frame's index costs a
    hundred times as much.
    """
    differences = np.array([mean - other[block] for block, mean in own.items() if block in other])
    if len(differences):
        ends = _student(differences, confidence)
        return Estimate(math.exp(differences.mean()), *_exponential(ends))
    means, others = np.array([*own.values()]), np.array([*other.values()])
    ends = _welch(means, others, confidence)
    return Estimate(math.exp(means.mean() - others.mean()), *_exponential(ends))


def interval_over_prompts(compared: pd.DataFrame, confidence: float) -> Interval:
    """Return the interval of a cell's speedup for other prompts of the same kind.

    Blocks and prompts are crossed, since every block sends every prompt, and both are random: with
    b blocks and p prompts the variance of the mean is (MS_blocks + MS_prompts - MS_rest) / (b p),
    with Satterthwaite's degrees of freedom (S. R. Searle, G. Casella, C. E. McCulloch, Variance
    Components, 1992, chapter 4). Passes through the prompts are averaged first: they are replicates
    of a block and a prompt. Four prompts are a small sample of all prompts, and the interval cannot
    know more than they do.

    Prompts that some block lacks are left out. Both ends are NaN with a single block, or with fewer
    than two prompts left.
    """
    logs = _logs(compared["speedup"])
    table = logs.groupby([compared["block"], compared["prompt"]]).mean().unstack()
    values = table.dropna(axis="columns").to_numpy(float)
    blocks, prompts = values.shape
    if min(blocks, prompts) < 2:
        return NO_INTERVAL
    of_block, of_prompt = values.mean(axis=1), values.mean(axis=0)
    rest = values - of_block[:, None] - of_prompt + values.mean()
    squares = np.array(
        [
            prompts * of_block.var(ddof=1),
            blocks * of_prompt.var(ddof=1),
            (rest**2).sum() / ((blocks - 1) * (prompts - 1)),
        ]
    )
    degrees = np.array([blocks - 1, prompts - 1, (blocks - 1) * (prompts - 1)])
    # By chance the rest can exceed what it is a part of; the variance is no less than either's.
    total = max(squares[0] + squares[1] - squares[2], squares[0], squares[1])
    if total == 0:
        return _exponential(Interval(values.mean(), values.mean()))
    effective = max(total**2 / (squares**2 / degrees).sum(), min(blocks, prompts) - 1)
    reach = student_quantile(effective, confidence) * math.sqrt(total / (blocks * prompts))
    return _exponential(Interval(values.mean() - reach, values.mean() + reach))


def ratio_of_prompts(
    compared: pd.DataFrame, reference: pd.DataFrame, confidence: float
) -> Estimate:
    """Return the speedup on some prompts over that on others, with its interval.

    Both are rows of `with_speedups`, of the same blocks. Prompts are what varies: Welch's t on the
    prompts' mean logarithms. What a block does to all of its prompts cancels.
    """
    own, other = (
        block_means(_logs(frame["speedup"]), frame["prompt"]).to_numpy()
        for frame in (compared, reference)
    )
    ends = _welch(own, other, confidence)
    return Estimate(math.exp(own.mean() - other.mean()), *_exponential(ends))


def joint_intervals(cells: Mapping[Name, pd.DataFrame], confidence: float) -> dict[Name, Interval]:
    """Return intervals of the cells' speedups that hold for all of them at once.

    `cells` has the rows of `with_speedups` of each cell. The best of many cells is partly the
    luckiest. Intervals that hold for all cells together also hold for the one that is picked.

    The deviation of a cell is its own between blocks, or the pooled one of all cells if that is
    larger: three blocks agree by luck too often, and seldom in all cells at once. `joint_quantile`
    then is much smaller than Bonferroni's. Cells with different numbers of blocks are pooled apart,
    each group at its share of the level. Cells with a single block have no interval.
    """
    logs = {
        name: block_means(_logs(members["speedup"]), members["block"]).to_numpy()
        for name, members in cells.items()
    }
    repeated = {name: means for name, means in logs.items() if len(means) > 1}
    intervals = dict.fromkeys(cells, NO_INTERVAL)
    for blocks in {len(means) for means in repeated.values()}:
        group = {name: means for name, means in repeated.items() if len(means) == blocks}
        level = 1 - (1 - confidence) * len(group) / len(repeated)
        quantile = joint_quantile(blocks, len(group), level)
        variances = {name: means.var(ddof=1) for name, means in group.items()}
        pooled = float(np.mean(list(variances.values())))
        for name, means in group.items():
            reach = quantile * math.sqrt(max(variances[name], pooled) / blocks)
            intervals[name] = _exponential(Interval(means.mean() - reach, means.mean() + reach))
    return intervals


def joint_quantile(blocks: int, cells: int, confidence: float) -> float:
    """Return how many standard errors intervals of several cells reach, to hold all at once.

    The standard error is by the larger of a cell's own deviation and the pooled one. If all cells
    spread alike and independently, pooling gives cells · (blocks - 1) degrees of freedom, and
    Bonferroni's quantile at those holds. If their errors are one and the same, as with a shared
    baseline, there are only blocks - 1 degrees, but a single error. The quantile is the largest
    over all numbers of independent errors between these, at the level of twice as many errors
    (more than six cells: of a third of their number times as many), because cells of unlike spread
    are pooled too. Simulations with spreads from equal to 10 : 1 and correlations from 0 to 0.99
    fail in at most 4.5 of 100 (tests/benchmarks/interval_coverage.py). Bonferroni's t on a cell's
    own deviation always holds, and is taken where it is smaller.
    """
    tail = 1 - confidence
    if cells == 1:
        return student_quantile(blocks - 1, confidence)
    bonferroni = student_quantile(blocks - 1, 1 - tail / cells)
    margin = max(2.0, cells / 3)
    pooled = max(
        student_quantile(errors * (blocks - 1), 1 - tail / errors / margin)
        for errors in range(1, cells + 1)
    )
    return min(bonferroni, pooled)


def _student(means: np.ndarray, confidence: float) -> Interval:
    count = len(means)
    if count < 2:
        return NO_INTERVAL
    reach = student_quantile(count - 1, confidence) * means.std(ddof=1) / math.sqrt(count)
    return Interval(float(means.mean() - reach), float(means.mean() + reach))


def _welch(means: np.ndarray, others: np.ndarray, confidence: float) -> Interval:
    """Return Welch's interval of the difference of two means."""
    if min(len(means), len(others)) < 2:
        return NO_INTERVAL
    difference = float(means.mean() - others.mean())
    errors = np.array([side.var(ddof=1) / len(side) for side in (means, others)])
    if errors.sum() == 0:
        return Interval(difference, difference)
    freedoms = np.array([len(means) - 1, len(others) - 1])
    degrees = float(errors.sum() ** 2 / (errors**2 / freedoms).sum())
    reach = student_quantile(degrees, confidence) * math.sqrt(errors.sum())
    return Interval(difference - reach, difference + reach)


def _logs(ratios: pd.Series) -> "pd.Series[float]":
    return ratios.astype(float).map(math.log)


def _exponential(interval: Interval) -> Interval:
    # numpy's exponential of a huge number is infinity, math's is an error.
    low, high = np.exp(interval)
    return Interval(float(low), float(high))
