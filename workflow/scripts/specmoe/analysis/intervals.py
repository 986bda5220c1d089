"""The three kinds of interval of a speedup.

The block is the unit of repetition: its runs share engine processes and minutes. Intervals are of
mean logarithms of ratios, each to a baseline of its own block.

1. *These prompts* (`mean_speedup`): Student's t on the means of blocks. Every block sends the same
   prompts, so it is about those. Tables and figures print this one.
2. *Prompts like these* (`mean_on_other_prompts`): prompts are random too, crossed with blocks.
3. *The best of several settings*: either of them at Bonferroni's share of the level (`settings` in
   `Mean.interval`), because the best of many settings is partly the luckiest.

Answers allow for another session too (`session_sd` in `Mean.interval`): all settings then move
together, so its part is added once and is not multiplied for the choice.
`tests/unit/analysis/test_coverage.py` shows how often each kind holds the truth.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd


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


MANY = 1e6
"""Degrees of freedom at which Student's t is the normal distribution."""
SESSION_CONFIDENCE = 0.96
"""Two-sided: an answer reaches as far as 98 % of the sessions on one side."""


def student_quantile(degrees: Any, confidence: float) -> Any:
    """Return Student's two-sided t; `degrees` of freedom need not be whole, and may be an array."""
    from scipy.special import stdtrit

    # As scipy.stats.t.ppf, whose module takes a second to import.
    return stdtrit(degrees, (1 + confidence) / 2)


def session_reach(session_sd: float) -> float:
    """Return how far the mean logarithm of another session may be."""
    return float(student_quantile(MANY, SESSION_CONFIDENCE)) * session_sd


class Mean(NamedTuple):
    """A mean logarithm, its standard error, and the degrees of freedom of that; or arrays of them.

    The error is NaN where nothing was repeated.
    """

    log: Any
    error: Any
    degrees: Any

    def reach(self, confidence: float, settings: int = 1, session_sd: float = 0.0) -> Any:
        """Return how far an interval goes to both sides of the mean logarithm.

        `settings` is among how many the best was chosen, `session_sd` the deviation of sessions.
        The errors of one setting and of its session are independent, so their squares add. The best
        of several owes nearly all of its error to having been chosen, and the session adds to that.
        """
        own = student_quantile(self.degrees, 1 - (1 - confidence) / settings) * self.error
        session = session_reach(session_sd)
        return np.hypot(own, session) if settings == 1 else own + session

    def interval(
        self, confidence: float, settings: int = 1, session_sd: float = 0.0
    ) -> tuple[float, float]:
        """Return both ends of the interval of the ratio itself, see `reach`; NaN without one."""
        reach = self.reach(confidence, settings, session_sd)
        # numpy's exponential of a huge number is infinity, math's is an error.
        with np.errstate(over="ignore"):
            return float(np.exp(self.log - reach)), float(np.exp(self.log + reach))

    def estimate(self, confidence: float) -> Estimate:
        """Return the ratio with its interval."""
        return Estimate(math.exp(self.log), *self.interval(confidence))


def block_mean(means: np.ndarray) -> Mean:
    """Return the mean of an array (..., blocks) of mean logarithms of blocks.

    Its interval is Student's: the kind *these prompts*.
    """
    blocks = means.shape[-1]
    if blocks < 2:
        return Mean(means.mean(axis=-1), np.nan, 1)
    return Mean(means.mean(axis=-1), means.std(axis=-1, ddof=1) / math.sqrt(blocks), blocks - 1)


def crossed_mean(logs: np.ndarray) -> Mean:
    """Return the mean of an array (..., blocks, prompts) for the kind *prompts like these*.

    Every block sends every prompt, so both are crossed, and both are random: with b blocks and p
    prompts the variance of the mean is (MS_blocks + MS_prompts - MS_rest) / (b p), with
    Satterthwaite's degrees of freedom (S. R. Searle, G. Casella, C. E. McCulloch, Variance
    Components, 1992, chapter 4). By chance the rest can exceed what it is a part of; the variance
    is no less than that by blocks or by prompts alone. Four prompts are a small sample of all, and
    the interval cannot know more than they do.
    """
    blocks, prompts = logs.shape[-2:]
    # Each prompt may lack in some block.
    mean = logs.mean(axis=(-1, -2)) if prompts else np.nan
    if min(blocks, prompts) < 2:
        return Mean(mean, np.nan, 1)
    degrees = np.array([blocks - 1, prompts - 1, (blocks - 1) * (prompts - 1)])
    rest = logs - logs.mean(axis=-1, keepdims=True) - logs.mean(axis=-2, keepdims=True)
    rest = rest + logs.mean(axis=(-1, -2), keepdims=True)
    block_square = prompts * logs.mean(axis=-1).var(axis=-1, ddof=1)
    prompt_square = blocks * logs.mean(axis=-2).var(axis=-1, ddof=1)
    rest_square = (rest**2).sum(axis=(-1, -2)) / degrees[2]
    squares = np.stack([block_square, prompt_square, rest_square], axis=-1)
    two = squares[..., :2]
    total = np.maximum(two.sum(axis=-1) - squares[..., 2], two.max(axis=-1))
    with np.errstate(invalid="ignore"):  # nothing may vary
        effective = np.nan_to_num(total**2 / (squares**2 / degrees).sum(axis=-1))
    return Mean(mean, np.sqrt(total / (blocks * prompts)), np.maximum(effective, degrees.min()))


def log_means(compared: pd.DataFrame, ratio: str = "speedup") -> "pd.Series[float]":
    """Return the mean logarithm of a column of ratios in each block, at all prompts of the setting.

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
    block_at, prompt_at = counts.nonzero()
    design = np.hstack([np.eye(len(sums))[block_at], np.eye(len(sums[0]))[prompt_at]])
    weights = np.sqrt(counts[block_at, prompt_at])
    values = sums[block_at, prompt_at] / weights
    effects, _, rank, _ = np.linalg.lstsq(design * weights[:, None], values, rcond=None)
    if rank < design.shape[1] - 1:
        return plain
    return pd.Series(effects[: len(sums)] + effects[len(sums) :].mean(), index=names)


def mean_speedup(compared: pd.DataFrame, ratio: str = "speedup") -> Mean:
    """Return the mean of a column of ratios over blocks: the kind *these prompts*."""
    return block_mean(log_means(compared, ratio).to_numpy())


def mean_on_other_prompts(compared: pd.DataFrame) -> Mean:
    """Return the mean speedup of a setting: the kind *prompts like these*.

    Iterations are averaged: they are replicates of a block and a prompt. Prompts that some block
    lacks do not count. It has no error with a single block, or with fewer than two such prompts.
    """
    sums, counts, _ = _crossed(compared, "speedup")
    known = counts.all(axis=0)
    return crossed_mean(sums[:, known] / counts[:, known])


def _crossed(compared: pd.DataFrame, ratio: str) -> tuple[np.ndarray, np.ndarray, pd.Index]:
    """Return sums of the logarithms by block and prompt, of how many they are, and the blocks."""
    # By hand, as a group-by costs ten times as much, and advice reads every setting several times.
    (block_at, blocks), (prompt_at, prompts) = (
        pd.factorize(compared[name], sort=True) for name in ("block", "prompt")
    )
    shape = len(blocks), len(prompts)
    place = block_at * len(prompts) + prompt_at
    logs = np.log(compared[ratio].to_numpy(dtype=float))
    sums, counts = (
        np.bincount(place, weights, minlength=shape[0] * shape[1]).reshape(shape)
        for weights in (np.nan_to_num(logs), ~np.isnan(logs))
    )
    return sums, counts, blocks
