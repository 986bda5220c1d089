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

Name = TypeVar("Name", bound=Hashable)


class Interval(NamedTuple):
    """Both ends of an interval; NaN where there is none."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A value with its interval; both ends are NaN where it has none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def columns(self, name: str) -> dict[str, float]:
        """Return the value and both ends as columns of a table."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    @classmethod
    def exact(cls, value: float) -> Self:
        """Return a number that is known without error."""
        return cls(value, value, value)

    def inverse(self) -> Self:
        """Return the estimate of a ratio's inverse."""
        return type(self)(1 / self.value, 1 / self.high, 1 / self.low)

    def minus(self, other: Self) -> Self:
        """Return the difference, whose interval reaches as far as those of both together."""
        return type(self)(self.value - other.value, self.low - other.high, self.high - other.low)

    def times(self, factor: float) -> Self:
        """Return a multiple."""
        low, high = sorted((self.low * factor, self.high * factor))
        return type(self)(self.value * factor, low, high)

    def within(self, low: float, high: float) -> Self:
        """Return the distance to the nearer end of a range; negative outside of it."""
        value, least, most = self
        return type(self)(
            min(value - low, high - value),
            min(least - low, high - most),
            min(most - low, high - least),
        )

    def widened(self, factor: float) -> Self:
        """Return the same number with each end so many times as far from it."""
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return type(self)(self.value, low, high)


NO_INTERVAL = Interval(math.nan, math.nan)
MANY = 1e6
"""Degrees of freedom at which Student's t is the normal distribution."""


def student_quantile(degrees: float, confidence: float) -> float:
    """Return Student's two-sided t; `degrees` of freedom need not be whole."""
    from scipy.special import stdtrit

    # As scipy.stats.t.ppf, whose module takes a second to import.
    return float(stdtrit(degrees, (1 + confidence) / 2))


def block_means(values: "pd.Series[float]", blocks: pd.Series) -> "pd.Series[float]":
    """Return the mean of each block, by its id."""
    return values.astype(float).groupby(blocks).mean()


def log_means(compared: pd.DataFrame, ratio: str = "speedup") -> "pd.Series[float]":
    """Return the mean logarithm of a column of ratios in each block, at all prompts of the cell.

    Where a block lacks a pair that others have, its mean would be that of easier or harder prompts.
    Means are then those of the additive model of blocks and prompts, by least squares: what a block
    has of the other prompts says how it would stand at the missing one. Blocks that share no prompt
    keep their plain means.
    """
    sums, counts, names = _crossed(compared, ratio)
    with np.errstate(invalid="ignore"):  # a block may lack the ratio altogether
        plain = pd.Series(sums.sum(axis=1) / counts.sum(axis=1), index=names)
    if (counts == counts[0]).all():
        return plain
    of_block, of_prompt = counts.nonzero()
    design = np.hstack([np.eye(len(sums))[of_block], np.eye(len(sums[0]))[of_prompt]])
    weights = np.sqrt(counts[of_block, of_prompt])
    values = sums[of_block, of_prompt] / weights
    effects, _, rank, _ = np.linalg.lstsq(design * weights[:, None], values, rcond=None)
    if rank < design.shape[1] - 1:
        return plain
    return pd.Series(effects[: len(sums)] + effects[len(sums) :].mean(), index=names)


def interval_of_speedup(compared: pd.DataFrame, confidence: float) -> Interval:
    """Return the interval of the geometric mean of the column `speedup` over blocks."""
    return Interval(*estimate_of_ratio(compared, "speedup", confidence)[1:])


def estimate_of_ratio(compared: pd.DataFrame, ratio: str, confidence: float) -> Estimate:
    """Return the geometric mean of a column of ratios over blocks, with Student's interval."""
    means = log_means(compared, ratio).to_numpy()
    return Estimate(math.exp(means.mean()), *_exponential(_student(means, confidence)))


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
    return log_means(compared).to_dict()


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
    return joint_intervals({"": compared}, confidence, other_prompts=True)[""]


def joint_intervals(
    cells: Mapping[Name, pd.DataFrame],
    confidence: float,
    *,
    other_prompts: bool = False,
    known: float = 0.0,
) -> dict[Name, Interval]:
    """Return intervals of the cells' speedups that hold for all of them at once.

    `cells` has the rows of `with_speedups` of each cell. The best of many cells is partly the
    luckiest. Intervals that hold for all cells together also hold for the one that is picked. They
    are about the prompts that were sent, or about others of their kind (`interval_over_prompts`).

    The deviation of a cell is its own, or the pooled one of all cells if that is larger: three
    blocks agree by luck too often, and seldom in all cells at once. `joint_quantile` then is much
    smaller than Bonferroni's. Cells with different numbers of blocks, or of prompts, are pooled
    apart, each group at its share of the level. Cells with a single block have no interval.

    `known` is a variance of every mean logarithm that no block shows, such as that between days; it
    is taken for exact.
    """
    read = _over_prompts if other_prompts else _over_blocks
    errors = {name: read(members) for name, members in cells.items()}
    repeated = {name: error for name, error in errors.items() if min(error.degrees) > 0}
    intervals = dict.fromkeys(cells, NO_INTERVAL)
    for degrees in {error.degrees for error in repeated.values()}:
        group = {name: error for name, error in repeated.items() if error.degrees == degrees}
        level = 1 - (1 - confidence) * len(group) / len(repeated)
        squares = np.mean([error.squares for error in group.values()], axis=0)
        pooled, effective = _variance(squares, degrees)
        quantile = joint_quantile(effective, len(group), level)
        for name, error in group.items():
            seen = max(_variance(error.squares, degrees)[0], pooled) / error.values
            reach = quantile * math.sqrt(seen)
            if known:
                # Satterthwaite's degrees of freedom, of a part that is estimated and one known,
                # may outweigh what is added; no interval is narrower for it.
                freedom = min(effective * (1 + known / seen) ** 2, MANY) if seen else MANY
                both = joint_quantile(freedom, len(group), level) * math.sqrt(seen + known)
                reach = max(reach, both)
            intervals[name] = _exponential(Interval(error.mean - reach, error.mean + reach))
    return intervals


def day_reach(spread: float, confidence: float) -> float:
    """Return how far one day's speedup may be from another's, as a share of it.

    `spread` is the deviation between the logarithms of two days' speedups.
    """
    return math.expm1(student_quantile(MANY, confidence) * spread)


class _Error(NamedTuple):
    """The mean logarithm of a cell's speedup, and what its error is estimated from.

    - squares: mean squares of what varies: of blocks; or of blocks, prompts and the rest.
    - degrees: their degrees of freedom.
    - values: the variance that the mean squares give is that of so many values.
    """

    mean: float
    squares: np.ndarray
    degrees: tuple[int, ...]
    values: int


def _over_blocks(compared: pd.DataFrame) -> _Error:
    means = log_means(compared).to_numpy()
    square = means.var(ddof=1) if len(means) > 1 else math.nan
    return _Error(means.mean(), np.array([square]), (len(means) - 1,), len(means))


def _over_prompts(compared: pd.DataFrame) -> _Error:
    sums, counts, _ = _crossed(compared, "speedup")
    known = counts.all(axis=0)
    values = sums[:, known] / counts[:, known]
    blocks, prompts = values.shape
    degrees = (blocks - 1, prompts - 1, (blocks - 1) * (prompts - 1))
    if min(degrees) < 1:
        return _Error(math.nan, np.full(3, math.nan), degrees, values.size)
    squares = [
        prompts * values.mean(axis=1).var(ddof=1),
        blocks * values.mean(axis=0).var(ddof=1),
        residual_square(values.T),
    ]
    return _Error(values.mean(), np.array(squares), degrees, values.size)


def residual_square(values: np.ndarray) -> float:
    """Return the mean square of what its means by row and by column leave of a table.

    It is the same of the table turned round, but for rounding.
    """
    rows, columns = values.shape
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum() / ((rows - 1) * (columns - 1)))


def _variance(squares: np.ndarray, degrees: tuple[int, ...]) -> tuple[float, float]:
    """Return the variance that mean squares give, and its degrees of freedom.

    See `interval_over_prompts`. By chance the rest can exceed what it is a part of; the variance is
    no less than that by blocks or by prompts alone.
    """
    total = max(squares[:2].sum() - squares[2:].sum(), squares[:2].max())
    if total == 0:
        return 0.0, min(degrees)
    effective = total**2 / (squares**2 / degrees).sum()
    return float(total), max(float(effective), min(degrees))


def joint_quantile(degrees: float, cells: int, confidence: float) -> float:
    """Return how many standard errors intervals of several cells reach, to hold all at once.

    The standard error is by the larger of a cell's own deviation and the pooled one, and a cell's
    own has so many degrees of freedom. If all cells spread alike and independently, pooling gives
    cells · degrees, and Bonferroni's quantile at those holds. If their errors are one and the same,
    as with a shared baseline, there are only a cell's own degrees, but a single error. The quantile
    is the largest over all numbers of independent errors between these, at the level of twice as
    many errors (more than six cells: of a third of their number times as many), because cells of
    unlike spread are pooled too. Simulations with spreads from equal to 10 : 1 and correlations
    from 0 to 0.99 fail in at most 4.5 of 100 (tests/benchmarks/interval_coverage.py). Bonferroni's
    t on a cell's own deviation always holds, and is taken where it is smaller.
    """
    tail = 1 - confidence
    if cells == 1:
        return student_quantile(degrees, confidence)
    bonferroni = student_quantile(degrees, 1 - tail / cells)
    margin = max(2.0, cells / 3)
    pooled = max(
        student_quantile(errors * degrees, 1 - tail / errors / margin)
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


def _crossed(compared: pd.DataFrame, ratio: str) -> tuple[np.ndarray, np.ndarray, pd.Index]:
    """Return sums of the logarithms by block and prompt, of how many they are, and the blocks."""
    # By hand, as a group-by costs ten times as much, and advice reads every cell several times.
    (of_block, blocks), (of_prompt, prompts) = (
        pd.factorize(compared[name], sort=True) for name in ("block", "prompt")
    )
    shape = len(blocks), len(prompts)
    place = of_block * len(prompts) + of_prompt
    logs = compared[ratio].astype(float).map(math.log).to_numpy()
    sums, counts = (
        np.bincount(place, weights, minlength=shape[0] * shape[1]).reshape(shape)
        for weights in (np.nan_to_num(logs), ~np.isnan(logs))
    )
    return sums, counts, blocks


def _exponential(interval: Interval) -> Interval:
    # numpy's exponential of a huge number is infinity, math's is an error.
    low, high = np.exp(interval)
    return Interval(float(low), float(high))
