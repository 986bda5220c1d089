"""How comparisons decide a claim, and what each verdict means.

A claim consists of comparisons (this cell gains more than that one, that rate is below 4 %). It
says that all of them hold, or most, or some. A comparison holds surely if its whole interval is on
the claimed side, fails surely if its whole interval is on the other side, and is open otherwise.
Without an interval (a single block) it is open. The verdicts are:

- supported: enough comparisons hold surely;
- contradicted: so many fail surely that enough cannot hold;
- inconclusive: neither; the numbers agree with the claim and with its contrary;
- not testable: there is nothing to compare, and the verdict names what is missing.

Limits of a verdict:

- Intervals of speedups and rates are Student's t over blocks. They say how far a number moves when
  the same blocks are measured again on this machine with these prompts. They say nothing about
  other prompts, models or machines. One 95 % interval in 40 is wholly on the wrong side of a bound
  by chance. With three blocks intervals are wide, and many verdicts are inconclusive.
- Two cells count as different if their intervals do not overlap. That is stricter than an interval
  of their difference, and stricter still where both share their baselines.
- Where every comparison must hold, false support is no likelier than in the weakest of them. But a
  single unlucky comparison contradicts the claim, and more comparisons make that likelier. So a
  verdict says how many comparisons there are and how many hold.
- The interval of a cell that is not paired leaves out the spread of its baseline. Between cells of
  one target that baseline cancels; against a bound or another target the interval is too narrow.
- Counts of tokens have no interval: greedy runs repeat them exactly.
- A verdict takes the rows as they are. The audit says whether rows can be measurements, so every
  verdict comes with the number of its rows that the audit marked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan
from typing import Any, Self

TableRow = Mapping[Any, Any]
"""A row of a table of the analysis."""


class Verdict(StrEnum):
    """The outcome for a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable"


class Share(StrEnum):
    """How many of its comparisons must hold for a claim to hold."""

    EVERY = "every"
    MOST = "most"
    SOME = "some"


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
        """Return a positive multiple."""
        return type(self)(self.value * factor, self.low * factor, self.high * factor)

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

    def words(self, digits: int = 2) -> str:
        """Return the number and, if it has one, its interval."""
        text = f"{self.value:.{digits}f}"
        if isnan(self.low):
            return f"{text} (one block, no interval)"
        if self.low == self.high:
            return text
        return f"{text} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


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


def conclude(
    comparisons: Sequence[Comparison], agree: str, missing: str, share: Share = Share.EVERY
) -> ClaimResult:
    """Return the verdict on a claim that a share of its comparisons hold.

    `agree` follows the count of the comparisons that hold by their numbers alone ("cells agree"),
    `missing` says what a campaign without comparisons lacks. The sentence ends with the comparison
    that decides: the nearest to failing, or the one that holds best if some suffice.
    """
    count = len(comparisons)
    if not count:
        return ClaimResult(Verdict.NOT_TESTABLE, missing)
    needed = {Share.EVERY: count, Share.MOST: count // 2 + 1, Share.SOME: 1}[share]
    sure = [each for each in comparisons if each.margin.low > 0]
    refuted = [each for each in comparisons if each.margin.high <= 0]
    if len(sure) >= needed:
        verdict, pool = Verdict.SUPPORTED, sure
    elif count - len(refuted) < needed:
        verdict, pool = Verdict.CONTRADICTED, refuted
    else:
        verdict = Verdict.INCONCLUSIVE
        pool = [each for each in comparisons if not (each.margin.low > 0 or each.margin.high <= 0)]
    pick = max if share == Share.SOME else min
    deciding = pick(pool, key=lambda each: each.margin.value)
    held = sum(each.margin.value > 0 for each in comparisons)
    rows = tuple(row for each in comparisons for row in each.rows)
    return ClaimResult(verdict, f"{held} of {count} {agree}. {deciding.words}", rows)
