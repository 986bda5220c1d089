"""How comparisons decide a claim, and what each verdict means.

A claim consists of comparisons (this cell gains more than that one, that rate is below 4 %). It
says that all of them hold, or most, or some. A comparison holds surely if its whole interval is on
the claimed side, fails surely if its whole interval is on the other side, and is open otherwise.
Without an interval (a single block) it is open. The verdicts are:

- supported: enough comparisons hold surely;
- rests on impossible rows: enough hold surely, but too few of them are of cells without a run that
  the audit calls impossible;
- contradicted: so many fail surely that enough cannot hold;
- inconclusive: neither; the numbers agree with the claim and with its contrary;
- not testable: there is nothing to compare, and the verdict names what is missing.

A verdict keeps its level whatever the number of comparisons. If k of n must hold, the intervals
that support a claim are widened to the level of n - k + 1 at once, and those that contradict it to
that of k (Bonferroni, for partial conjunctions). So a false claim is supported, and a true one
contradicted, by luck in at most half of what the confidence leaves, 2.5 % of cases, however its
comparisons depend on each other.

Limits of a verdict:

- Intervals of speedups and rates are Student's t over blocks. They say how far a number moves when
  the same blocks are measured again on this machine with these prompts. They say nothing about
  other prompts, models or machines. With three blocks intervals are wide, and many verdicts are
  inconclusive.
- Two cells count as different if their intervals do not overlap. That is stricter than an interval
  of their difference, and stricter still where both share their baselines.
- The interval of a cell that is not paired leaves out the spread of its baseline. Between cells of
  one target that baseline cancels; against a bound or another target the interval is too narrow.
- Counts of tokens have no interval: greedy runs repeat them exactly.
- A contradiction takes the rows as they are: impossible rows can contradict what was said of them.
  So every verdict comes with the number of its rows that the audit marked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan
from typing import Any, Self

from specmoe.analysis.intervals import student_quantile
from specmoe.analysis.number_text import fixed, interval

TableRow = Mapping[Any, Any]
"""A row of a table of the analysis."""


class Verdict(StrEnum):
    """The outcome for a claim."""

    SUPPORTED = "supported"
    IMPOSSIBLE_ROWS = "rests on impossible rows"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable"


class Share(StrEnum):
    """How many of its comparisons must hold for a claim to hold."""

    EVERY = "every"
    MOST = "most"
    SOME = "some"


@dataclass(frozen=True)
class Level:
    """The confidence of the intervals, and their degrees of freedom."""

    confidence: float
    degrees: float

    def widening(self, at_once: int) -> float:
        """Return how many times as wide an interval is that holds for so many at once."""
        each = 1 - (1 - self.confidence) / at_once
        one = student_quantile(self.degrees, self.confidence)
        return student_quantile(self.degrees, each) / one


@dataclass(frozen=True)
class Estimate:
    """A number and its interval; both ends are NaN where it has none."""

    value: float
    low: float = nan
    high: float = nan

    @classmethod
    def exact(cls, value: float) -> Self:
        """Return a number that is known without error."""
        return cls(value, value, value)

    def minus(self, other: Self) -> Self:
        """Return the difference, whose interval reaches as far as those of both together."""
        return type(self)(self.value - other.value, self.low - other.high, self.high - other.low)

    def times(self, factor: float) -> Self:
        """Return a multiple."""
        low, high = sorted((self.low * factor, self.high * factor))
        return type(self)(self.value * factor, low, high)

    def over(self, other: Self) -> Self:
        """Return the ratio of two positive numbers, whose interval reaches as far as both."""
        return type(self)(self.value / other.value, self.low / other.high, self.high / other.low)

    def within(self, low: float, high: float) -> Self:
        """Return the distance to the nearer end of a range; negative outside of it."""
        return type(self)(
            min(self.value - low, high - self.value),
            min(self.low - low, high - self.high),
            min(self.high - low, high - self.low),
        )

    def at_least(self, bound: float) -> Self:
        """Return the same number, raised to a bound that it cannot be below."""
        return type(self)(*(max(end, bound) for end in (self.value, self.low, self.high)))

    def widened(self, factor: float) -> Self:
        """Return the same number with each end so many times as far from it."""
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return type(self)(self.value, low, high)

    def words(self, digits: int = 2, *, ratio: bool = True) -> str:
        """Return the number and, if it has one, its interval; `ratio` as in `interval`."""
        text = fixed(self.value, digits)
        if isnan(self.low):
            return f"{text} (one block, no interval)"
        if self.low == self.high:
            return text
        return f"{text} {interval(self.low, self.high, digits, ratio=ratio)}"


@dataclass(frozen=True)
class Comparison:
    """One comparison of a claim: its margin on the claimed side, its words, and its rows."""

    margin: Estimate
    words: str
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class ClaimResult:
    """A verdict, a sentence with the numbers that decide it, and the rows it rests on."""

    verdict: Verdict
    why: str
    rows: tuple[TableRow, ...] = ()
    comparisons: int = 0


def conclude(
    comparisons: Sequence[Comparison],
    agree: str,
    missing: str,
    level: Level,
    share: Share = Share.EVERY,
    is_impossible: Callable[[TableRow], bool] = lambda _: False,
) -> ClaimResult:
    """Return the verdict on a claim that a share of its comparisons hold.

    `agree` follows the count of the comparisons that hold by their numbers alone ("cells agree"),
    `missing` says what a campaign without comparisons lacks, `is_impossible` whether a row has runs
    that cannot be true. The sentence ends with the comparison that decides: the nearest to failing,
    or the one that holds best if some suffice.
    """
    count = len(comparisons)
    if not count:
        return ClaimResult(Verdict.NOT_TESTABLE, missing)
    needed = {Share.EVERY: count, Share.MOST: count // 2 + 1, Share.SOME: 1}[share]
    wide, wider = (level.widening(at_once) for at_once in (count - needed + 1, needed))
    sure = [each for each in comparisons if each.margin.widened(wide).low > 0]
    refuted = [each for each in comparisons if each.margin.widened(wider).high <= 0]
    if len(sure) >= needed:
        possible = [each for each in sure if not any(map(is_impossible, each.rows))]
        enough = len(possible) >= needed
        verdict, pool = Verdict.SUPPORTED if enough else Verdict.IMPOSSIBLE_ROWS, sure
    elif count - len(refuted) < needed:
        verdict, pool = Verdict.CONTRADICTED, refuted
    else:
        verdict = Verdict.INCONCLUSIVE
        decided = {id(each) for each in (*sure, *refuted)}
        pool = [each for each in comparisons if id(each) not in decided]
    pick = max if share == Share.SOME else min
    deciding = pick(pool, key=lambda each: each.margin.value)
    held = sum(each.margin.value > 0 for each in comparisons)
    rows = tuple(row for each in comparisons for row in each.rows)
    return ClaimResult(verdict, f"{held} of {count} {agree}. {deciding.words}", rows, count)
