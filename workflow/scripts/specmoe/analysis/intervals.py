"""The three kinds of interval of a speedup.

The block is the unit of repetition: its runs share minutes of the machine. Intervals are of mean
logarithms of ratios, each to a baseline of its own block. Blocks that share prompts, be it by way
of others, are a *stratum*: where every block sends all prompts there is one, where a block is one
prompt there is one for each prompt.

1. *These prompts* (`mean_speedup`): Student's t on the means of blocks, within strata. Tables and
   figures print this one. Where no stratum was repeated, what strata differ by stands for what
   blocks do: it holds that, and the difference of their prompts.
2. *Prompts like these* (`mean_on_other_prompts`): prompts are random too. Strata are the sample; in
   a single one prompts are crossed with blocks. Where prompts come in kinds, kinds are random too.
3. *The best of several settings*: either of them at Bonferroni's share of the level (`settings` in
   `Mean.interval`), because the best of many settings is partly the luckiest.

The variances of one target's settings are nearly alike, so each is shrunk to the others
(`moderated`). Answers allow for another session too, by the few pairs of sessions that are known
(`Session`): all settings then move together, so that part is added once, not for each choice.
`tests/unit/analysis/test_coverage.py` shows how often each kind holds the truth.
"""

import math
from collections.abc import Iterator, Sequence
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
    def of_ratio(cls, value: float, reach: float) -> Self:
        """Return a ratio whose logarithm is known to within `reach`."""
        return cls(value, value / math.exp(reach), value * math.exp(reach))

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
        """Return a multiple by a positive factor."""
        return type(self)(*(number * factor for number in self))

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


def student_quantile(degrees: Any, confidence: Any) -> Any:
    """Return Student's two-sided t; `degrees` of freedom need not be whole, and may be an array."""
    from scipy.special import stdtrit

    # As scipy.stats.t.ppf, whose module takes a second to import.
    return stdtrit(degrees, (1 + confidence) / 2)


SESSIONS = 0.95
"""The share of sessions that an answer allows for, two-sided, and how sure it is that the share is
no less, where few pairs of sessions are known."""


class Session(NamedTuple):
    """How far a session's mean logarithms are from those of all, as standard deviations."""

    common: float = 0.0  # of all settings of a target together
    own: float = 0.0  # of each setting by itself
    degrees: float = MANY  # of freedom of both

    @property
    def reach(self) -> float:
        """How far all settings together may be in another session: a tolerance limit."""
        from scipy.special import chdtri

        unsure = math.sqrt(self.degrees / chdtri(self.degrees, SESSIONS))
        return float(student_quantile(MANY, SESSIONS)) * unsure * self.common


SAME_SESSION = Session()


class Mean(NamedTuple):
    """A mean logarithm, its standard error, and the degrees of freedom of that; or arrays of them.

    The error is NaN where nothing was repeated. `number` is of how many blocks the mean is, so that
    the deviation of a block is error * sqrt(number); `repeated`: whether the error is that of
    repeated blocks; `residuals`: what each block differs by from its stratum, and `strata`: which
    that is, in order of time; `widened`: by how much the error was multiplied because blocks are
    like those before them.
    """

    log: Any
    error: Any
    degrees: Any
    number: Any = 1
    repeated: Any = True
    residuals: Any = ()
    strata: Any = ()
    widened: Any = 1.0

    def reach(self, confidence: float, settings: int = 1, session: Session = SAME_SESSION) -> Any:
        """Return how far an interval goes to both sides of the mean logarithm.

        `settings` is among how many the best was chosen, at Bonferroni's level. The setting's
        errors, of blocks and of its own part of the session, and what all settings have in common
        of the session, are independent, so squares add. But of the best of several the errors are
        not about zero: half of the time the largest is beyond `typical`. How unsure the deviation
        of own parts is, is the same for all: Student's t allows for it once, not for each choice.
        """
        level, half = 1 - (1 - confidence) / settings, 2 * 0.5 ** (1 / settings) - 1
        unsure = np.divide(*student_quantile([session.degrees, MANY], confidence))
        parts = (self.degrees, self.error), (MANY, unsure * session.own)
        alone, typical = (
            np.hypot(*(student_quantile(degrees, share) * error for degrees, error in parts))
            for share in (level, half)
        )
        return typical + np.hypot(alone - typical, session.reach)

    def interval(
        self, confidence: float, settings: int = 1, session: Session = SAME_SESSION
    ) -> tuple[Any, Any]:
        """Return both ends of the interval of the ratio itself, see `reach`; NaN without one."""
        reach = self.reach(confidence, settings, session)
        # numpy's exponential of a huge number is infinity, math's is an error.
        with np.errstate(over="ignore"):
            return np.exp(self.log - reach), np.exp(self.log + reach)

    def estimate(self, confidence: float) -> Estimate:
        """Return the ratio with its interval."""
        return Estimate(math.exp(self.log), *self.interval(confidence))


class Stratum(NamedTuple):
    """Blocks of a setting that share prompts; arrays may have further dimensions in front.

    blocks: mean logarithms of the blocks (..., blocks) at all prompts; prompts: of the prompts
    (..., prompts) at all blocks; rest: the mean square of what both leave, and its degrees of
    freedom; at: when each block began; kinds: those of the prompts, as numbers, may be empty.
    """

    blocks: np.ndarray
    prompts: np.ndarray
    rest: Any
    rest_degrees: int
    at: np.ndarray
    kinds: np.ndarray

    @classmethod
    def complete(cls, logs: np.ndarray, at: Any = None, kinds: Any = ()) -> Self:
        """Return the stratum of an array (..., blocks, prompts) of logarithms."""
        blocks, prompts = logs.shape[-2:]
        rest = logs - logs.mean(axis=-1, keepdims=True) - logs.mean(axis=-2, keepdims=True)
        rest = rest + logs.mean(axis=(-1, -2), keepdims=True)
        degrees = (blocks - 1) * (prompts - 1)
        square = (rest**2).sum(axis=(-1, -2)) / max(degrees, 1)
        at, kinds = np.arange(blocks) if at is None else np.asarray(at), np.asarray(kinds)
        return cls(logs.mean(axis=-1), logs.mean(axis=-2), square, degrees, at, kinds)

    @classmethod
    def fitted(cls, sums: np.ndarray, counts: np.ndarray, at: Any, kinds: Any) -> Self:
        """Return the same of sums and counts by block and prompt, some of which lack.

        Where a block lacks a pair that others have, its mean would be that of easier or harder
        prompts. Means are then those of the additive model of blocks and prompts, by least squares:
        what a block has of the other prompts says how it would stand at the missing one.
        """
        if (counts == counts.flat[0]).all():
            return cls.complete(sums / counts, at, kinds)
        blocks, prompts, square, degrees = additive_model(sums, counts)
        return cls(blocks + prompts.mean(), prompts + blocks.mean(), square, degrees, at, kinds)


def additive_model(
    sums: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Return the effects of rows and columns of a table with gaps, by least squares.

    `sums` and `counts` are those of what each cell has. Behind the effects: the mean square of what
    they leave, and its degrees of freedom.
    """
    row_at, column_at = counts.nonzero()
    design = np.hstack([np.eye(len(sums))[row_at], np.eye(len(sums[0]))[column_at]])
    weights = np.sqrt(counts[row_at, column_at])
    values = sums[row_at, column_at] / weights
    effects = np.linalg.lstsq(design * weights[:, None], values, rcond=None)[0]
    degrees = len(values) - len(effects) + 1
    rest = values / weights - design @ effects
    of_rows, of_columns = np.split(effects, [len(sums)])
    return of_rows, of_columns, (rest**2).sum() / max(degrees, 1), degrees


def block_mean(means: np.ndarray) -> Mean:
    """Return the mean of an array (..., blocks) of mean logarithms of blocks of one stratum."""
    return on_these_prompts([Stratum.complete(means[..., None])])


def on_these_prompts(strata: Sequence[Stratum]) -> Mean:
    """Return the mean over strata, weighted by their prompts: the kind *these prompts*."""
    means, weights = _by_stratum(strata)
    blocks = np.array([stratum.blocks.shape[-1] for stratum in strata])
    log, degrees = means @ weights, int(blocks.sum()) - len(blocks)
    order = np.argsort(np.concatenate([stratum.at for stratum in strata]), kind="stable")
    if not degrees:
        square, degrees = _sampled(means, weights)
        residuals = (means - log[..., None])[..., order]
        return Mean(log, np.sqrt(square), degrees, len(blocks), False, residuals, order * 0)
    off = [stratum.blocks - stratum.blocks.mean(axis=-1, keepdims=True) for stratum in strata]
    residuals = np.concatenate(off, axis=-1)[..., order]
    number = float(1 / (weights**2 / blocks).sum())
    square = (residuals**2).sum(axis=-1) / degrees / number
    places = np.repeat(np.arange(len(blocks)), blocks)[order]
    return Mean(log, np.sqrt(square), degrees, number, True, residuals, places)


def on_such_prompts(strata: Sequence[Stratum], these: Mean | None = None) -> Mean:
    """Return the mean over strata for the kind *prompts like these*.

    `these` is the mean on these prompts, whose error is that of the blocks; it may be moderated.
    Several strata are the sample, whose spread has that of their blocks. In a single one of b
    blocks and p prompts both are crossed, and the variance of the mean is (MS_blocks + MS_prompts -
    MS_rest) / (b p), with Satterthwaite's degrees of freedom (S. R. Searle, G. Casella, C. E.
    McCulloch, Variance Components, 1992, chapter 4). By chance the rest can exceed what it is a
    part of; the variance is no less than that by blocks or by prompts alone. Four prompts are a
    small sample of all, and the interval cannot know more than they do.
    """
    these = on_these_prompts(strata) if these is None else these
    by_blocks = np.square(these.error)
    kinds = np.concatenate([stratum.kinds for stratum in strata])
    if len(strata) > 1:
        means, weights = _by_stratum(strata)
        several = len(kinds) != len(strata)  # a stratum of several prompts has no kind
        square, degrees = _sampled(means, weights, kinds[:0] if several else kinds)
        if these.repeated:
            square = square + by_blocks * (1 - 1 / np.square(these.widened))
            square = np.maximum(square, by_blocks)  # prompts may agree by chance
        else:
            square = square * np.square(these.widened)
        return these._replace(error=np.sqrt(square), degrees=degrees)
    [(block_means, prompt_means, square, rest_degrees, *_)] = strata
    blocks, prompts = block_means.shape[-1], prompt_means.shape[-1]
    if min(blocks, prompts) < 2 or not rest_degrees:
        return these._replace(error=these.error * np.nan, degrees=1)
    by_prompts, of_prompts = _sampled(prompt_means, np.full(prompts, 1 / prompts), kinds)
    rest = np.broadcast_to(square / (rest_degrees + blocks + prompts - 1), by_prompts.shape)
    two = np.stack([np.broadcast_to(by_blocks, by_prompts.shape), by_prompts], axis=-1)
    total = np.maximum(two.sum(axis=-1) - rest, two.max(axis=-1))
    parts = by_blocks**2 / these.degrees + by_prompts**2 / of_prompts + rest**2 / rest_degrees
    with np.errstate(invalid="ignore"):  # nothing may vary
        effective = np.nan_to_num(total**2 / parts)
    least = np.minimum(np.minimum(these.degrees, of_prompts), rest_degrees)
    return these._replace(error=np.sqrt(total), degrees=np.maximum(effective, least))


def _by_stratum(strata: Sequence[Stratum]) -> tuple[np.ndarray, np.ndarray]:
    """Return the means (..., strata), and the share of all prompts that each has."""
    prompts = np.array([stratum.prompts.shape[-1] for stratum in strata])
    means = np.stack([stratum.blocks.mean(axis=-1) for stratum in strata], axis=-1)
    return means, prompts / prompts.sum()


FEWEST_KINDS, FEWEST_OF_KIND = 3, 2


def _sampled(values: np.ndarray, weights: np.ndarray, kinds: Any = ()) -> tuple[Any, int]:
    """Return the squared error of the weighted mean of a sample (..., values), and its degrees.

    With enough kinds of several values these are the sample: it is about 20 % wider where kinds do
    not differ, but where most of the spread is by kind that of values holds 78 % of the truths.
    """
    names, places, sizes = np.unique(kinds, return_inverse=True, return_counts=True)
    if (sizes >= FEWEST_OF_KIND).sum() >= FEWEST_KINDS:
        member = np.eye(len(names))[places] * weights[:, None]
        weights = member.sum(axis=0)
        values = values @ member / weights
    count = values.shape[-1]
    if count < 2:
        return values[..., 0] * np.nan, 0
    off = weights * (values - (values @ weights)[..., None])
    return (off**2).sum(axis=-1) * count / (count - 1), count - 1


PRIOR_SHARE = 0.5
"""The share of the prior's degrees of freedom that counts. With all of it, too few intervals hold
where settings share a baseline; with half of it they hold there and where each has its own."""
FEWEST_SETTINGS = 3


def stacked(means: Sequence[Mean]) -> Mean:
    """Return means as one of arrays, without residuals."""
    return Mean(*np.array([mean[:5] for mean in means], float).reshape(-1, 5).T)


def moderated(means: Sequence[Mean]) -> list[Mean]:
    """Return the means of one target's settings with variances shrunk to those of all.

    The variance of a block becomes (d0 s0² + d s²) / (d0 + d), with d0 + d degrees of freedom, d
    being its own (G. K. Smyth, Linear models and empirical Bayes methods, 2004). s0 and d0 are by
    moments of log s²; d0 is at most d (S - 1) of S settings, and PRIOR_SHARE of it counts. A
    setting without repeated blocks has s0 alone. With fewer than FEWEST_SETTINGS there is no prior.
    Where blocks are like those before them, errors are widened (`inflation`).
    """
    if not means:
        return []
    # Those with most blocks tell most; only they have blocks of all times.
    most = max((mean.strata for mean in means), key=len)
    told = np.array([mean.residuals for mean in means if np.array_equal(mean.strata, most)])
    shrunk = moderate(stacked(means)._replace(residuals=told, strata=most))
    return [
        mean._replace(error=float(error), degrees=float(freedom), widened=float(shrunk.widened[0]))
        for mean, error, freedom in zip(means, shrunk.error, shrunk.degrees, strict=True)
    ]


def moderate(means: Mean) -> Mean:
    """Return the same of arrays (..., settings), with residuals (..., settings, blocks)."""
    from scipy.special import digamma, polygamma

    wider = inflation(means.residuals, means.strata)[..., None]
    error = means.error * wider
    repeated = np.broadcast_to(means.repeated, error.shape)
    degrees = np.broadcast_to(np.asarray(means.degrees, float), error.shape)
    squares = np.where(repeated, np.square(means.error) * means.number, 0.0)
    known = squares > 0
    count = known.sum(axis=-1, keepdims=True)
    half = np.where(known, degrees, 1.0) / 2
    logs = np.log(np.where(known, squares, 1.0)) - digamma(half) + np.log(half)

    def mean(values: np.ndarray) -> Any:
        return np.where(known, values, 0.0).sum(axis=-1, keepdims=True) / np.maximum(count, 1)

    spread = mean((logs - mean(logs)) ** 2) * count / np.maximum(count - 1, 1)
    differ = spread - mean(polygamma(1, half))
    half_prior = _inverse_trigamma(differ)
    prior = np.exp(mean(logs) + digamma(half_prior) - np.log(half_prior))
    # Where they differ by chance alone, their mean is known better.
    prior = np.where(differ > 0, prior, mean(squares * half) / np.maximum(mean(half), 1 / MANY))
    share = PRIOR_SHARE * np.minimum(2 * half_prior, mean(degrees) * (count - 1))
    share = np.where(count < FEWEST_SETTINGS, 0.0, share)
    freedom = np.where(repeated, degrees, 0.0)
    shrunk = (share * prior + freedom * squares) / np.maximum(share + freedom, 1 / MANY)
    error = np.where(share > 0, np.sqrt(shrunk / means.number) * wider, error)
    degrees = np.where(share > 0, share + freedom, degrees)
    return means._replace(error=error, degrees=degrees, widened=wider)


def _inverse_trigamma(values: np.ndarray) -> np.ndarray:
    """Return where the trigamma function has these values, by Newton's method; MANY below zero."""
    from scipy.special import polygamma

    values = np.maximum(values, 1 / MANY)
    roots: np.ndarray = 0.5 + 1 / values
    for _ in range(10):
        now = polygamma(1, roots)
        roots = roots + now * (1 - now / values) / polygamma(2, roots)
    return roots


FEWEST_BLOCKS = 8


def inflation(residuals: np.ndarray, strata: Sequence[int]) -> Any:
    """Return the factor, at least 1, by which neighbours in time that are alike widen errors.

    `residuals` are (..., settings, blocks), in order of time, `strata` the strata of the blocks.
    Their products of neighbours, of all settings together, are compared with those
    that an autoregression of first order would leave within strata, and the error of a mean with
    the one that it would have. Fewer than FEWEST_BLOCKS cannot tell.
    """
    settings = np.moveaxis(residuals, -2, 0)
    products = sum((settings[..., 1:] * settings[..., :-1]).sum(axis=-1))
    squares = sum((settings**2).sum(axis=-1))
    blocks = len(strata)
    if blocks < FEWEST_BLOCKS:
        return np.ones_like(squares)
    same = np.equal.outer(strata, strata)
    within = np.eye(blocks) - same / same.sum(axis=0)
    apart = abs(np.subtract.outer(np.arange(blocks), np.arange(blocks)))
    expected, widened = [], []
    for correlation in np.linspace(0, 0.95, 20):
        pairs = correlation**apart
        left = within @ pairs @ within
        expected.append(np.trace(left, 1) / np.trace(left))
        widened.append(pairs.sum() / blocks * np.trace(within) / np.trace(left))
    seen = products / np.where(squares > 0, squares, 1.0)
    return np.sqrt(np.interp(seen, expected, widened))


def geometric_mean(values: Any) -> float:
    """Return the geometric mean of an array or column of positive numbers."""
    return math.exp(np.log(np.asarray(values, float)).mean())


def log_means(compared: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean logarithm of speedup in each block, see `Stratum.fitted`."""
    means = [pd.Series(stratum.blocks, blocks) for stratum, blocks in _strata(compared, "speedup")]
    return pd.concat(means).sort_index()


def mean_speedup(compared: pd.DataFrame, ratio: str = "speedup") -> Mean:
    """Return the mean of a column of ratios over blocks: the kind *these prompts*."""
    return on_these_prompts([stratum for stratum, _ in _strata(compared, ratio)])


def mean_on_other_prompts(compared: pd.DataFrame, these: Mean | None = None) -> Mean:
    """Return the mean speedup of a setting: the kind *prompts like these*, see `on_such_prompts`.

    Iterations are averaged: they are replicates of a block and a prompt. It has no error with a
    single prompt, nor with a single block of all prompts.
    """
    return on_such_prompts([stratum for stratum, _ in _strata(compared, "speedup")], these)


def _strata(compared: pd.DataFrame, ratio: str) -> Iterator[tuple[Stratum, pd.Index]]:
    """Return the strata of a setting's pairs, each with the names of its blocks."""
    # By hand, as a group-by costs ten times as much, and advice reads every setting several times.
    (block_at, blocks), (prompt_at, prompts) = (
        pd.factorize(compared[name], sort=True) for name in ("block", "prompt")
    )
    logs = np.log(compared[ratio].to_numpy(dtype=float))
    sums, counts = np.zeros((2, len(blocks), len(prompts)))
    np.add.at(sums, (block_at, prompt_at), np.nan_to_num(logs))
    np.add.at(counts, (block_at, prompt_at), ~np.isnan(logs))
    kinds = np.arange(len(prompts))
    began = compared["started_at"] if "started_at" in compared else pd.Series(block_at)
    times = began.groupby(block_at).min().rank(method="first").to_numpy()
    if "category" in compared and compared["category"].notna().all():
        kinds = pd.factorize(compared["category"])[0][np.unique(prompt_at, return_index=True)[1]]
    for stratum in _connected(counts > 0):
        sent = counts[stratum].any(axis=0)
        part = np.ix_(stratum, sent)
        fitted = Stratum.fitted(sums[part], counts[part], times[stratum], kinds[sent])
        yield fitted, blocks[stratum]


def _connected(sent: np.ndarray) -> list[np.ndarray]:
    """Return the blocks of each stratum, of which prompts (columns) each block (row) sent."""
    linked: np.ndarray = (sent[:, None] & sent).any(axis=-1)
    while (wider := linked @ linked).sum() > linked.sum():
        linked = wider
    known = linked[sent.any(axis=1)]
    return [np.flatnonzero(row) for row in np.unique(known, axis=0)]
