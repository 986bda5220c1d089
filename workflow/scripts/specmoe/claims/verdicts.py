"""What becomes of a claim when its comparisons are made, and what each verdict means.

A claim is a number of comparisons (this cell gains more than that one, that rate lies below 4 %),
and says that every one of them holds, or most, or some. A comparison holds surely if its whole
interval lies on the claimed side, fails surely if its whole interval lies on the other, and is open
otherwise; without an interval (a single block) it stays open. Of the claim this makes:

- supported: enough comparisons hold surely;
- contradicted: so many fail surely that enough cannot hold;
- inconclusive: neither; the numbers agree with the claim and with its contrary;
- not testable: there is nothing to compare, and what is missing is named.

What that is worth:

- Intervals of speedups and rates are bootstraps over blocks. They say how far a number moves when
  the same blocks are measured again, on this machine with these prompts, and nothing of other
  prompts, models or machines. With three blocks they are the range of the blocks' means: three
  blocks all lie on the wrong side of a bound by chance in one case of 8, and all three of one cell
  above all three of an equal one in one of 20.
- Two cells are told apart where their intervals do not overlap. That asks for more than an interval
  of their difference would, and for still more where both share their baselines.
- Where every comparison must hold, false support is no likelier than in the weakest of them; but a
  single unlucky one contradicts, so the more there are, the likelier that is. Hence the sentence
  of a verdict says how many there are and how many hold.
- The interval of a cell that is not paired leaves out how its baseline varies. Between cells of one
  target that baseline cancels; against a bound or another target the interval is too narrow.
- Counts of tokens carry no interval: greedy runs repeat them exactly.
- A verdict takes the rows as they are. Whether rows can be measurements is the audit's to say, so
  every verdict comes with the number of its rows that the audit marked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan
from typing import Any, Self

Row = Mapping[Any, Any]
"""A row of a table of the analysis."""


class Verdict(StrEnum):
    """What a campaign says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable"


class Share(StrEnum):
    """How many of its comparisons must hold for a claim to hold."""

    EVERY = "every"
    MOST = "most"
    SOME = "some"

    def of(self, count: int) -> int:
        """Return how many that is, of so many."""
        return {Share.EVERY: count, Share.MOST: count // 2 + 1, Share.SOME: 1}[self]


@dataclass(frozen=True)
class Quantity:
    """A number and its interval; both ends are NaN where there is none."""

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

    def within(self, low: float, high: float) -> Self:
        """Return how far inside a range it lies; negative if outside."""
        return type(self)(
            min(self.value - low, high - self.value),
            min(self.low - low, high - self.high),
            min(self.high - low, high - self.low),
        )

    def at_least(self, bound: float) -> Self:
        """Return the same number, known not to lie below a bound."""
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
    """One thing a claim says: how far the numbers are on its side, in words, of which rows."""

    margin: Quantity
    words: str
    rows: tuple[Row, ...]

    @property
    def holds_surely(self) -> bool:
        """Whether the whole interval is on the claim's side."""
        return self.margin.low > 0

    @property
    def fails_surely(self) -> bool:
        """Whether the whole interval is on the other side."""
        return self.margin.high <= 0


@dataclass(frozen=True)
class Judgement:
    """A verdict, the numbers that decide it as a sentence, and the rows it rests on."""

    verdict: Verdict
    why: str
    rows: tuple[Row, ...] = ()


def conclude(
    comparisons: Sequence[Comparison], of: str, missing: str, share: Share = Share.EVERY
) -> Judgement:
    """Return the verdict on a claim that a share of its comparisons hold.

    `of` says what is compared ("cells of ..."), `missing` what a campaign lacks that has nothing to
    compare. The sentence counts the comparisons that hold by their numbers alone, and tells the one
    that decides: the nearest to failing, or of a claim about some, the one that holds best.
    """
    if not comparisons:
        return Judgement(Verdict.NOT_TESTABLE, missing)
    verdict = _verdict(comparisons, share.of(len(comparisons)))
    pool = {
        Verdict.SUPPORTED: [each for each in comparisons if each.holds_surely],
        Verdict.CONTRADICTED: [each for each in comparisons if each.fails_surely],
        Verdict.INCONCLUSIVE: [
            each for each in comparisons if not (each.holds_surely or each.fails_surely)
        ],
    }[verdict]
    pick = max if share == Share.SOME else min
    deciding = pick(pool, key=lambda each: each.margin.value)
    held = sum(each.margin.value > 0 for each in comparisons)
    rows = tuple(row for each in comparisons for row in each.rows)
    return Judgement(verdict, f"{held} of {len(comparisons)} {of}: {deciding.words}", rows)


def _verdict(comparisons: Sequence[Comparison], needed: int) -> Verdict:
    if sum(each.holds_surely for each in comparisons) >= needed:
        return Verdict.SUPPORTED
    possible = len(comparisons) - sum(each.fails_surely for each in comparisons)
    return Verdict.CONTRADICTED if possible < needed else Verdict.INCONCLUSIVE
