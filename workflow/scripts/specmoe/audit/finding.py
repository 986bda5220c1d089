"""What a check finds of a run: a value, its bound, and how far apart they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf


class CheckVerdict(StrEnum):
    """The outcome of one check of one run."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    NOT_JUDGED = "not judged"  # it applies, and what decides it was not measured


class Level(StrEnum):
    """What a run that fails a check is."""

    IMPOSSIBLE = "impossible"  # no true run can fail it
    SUSPICIOUS = "suspicious"  # none should: it rests on what such a run usually takes


@dataclass(frozen=True)
class Finding:
    """One check of one run; `ratio` is the measured value over its bound.

    Without a ratio the check does not apply, and `why` is the reason.
    """

    why: str
    measured: float | None = None
    bound: float | None = None
    ratio: float | None = None
    judged: bool = True

    @property
    def verdict(self) -> CheckVerdict:
        """Whether the bound holds."""
        if not self.judged:
            return CheckVerdict.NOT_JUDGED
        if self.ratio is None:
            return CheckVerdict.NOT_APPLICABLE
        return CheckVerdict.FAIL if self.ratio > 1 else CheckVerdict.PASS


def at_most(measured: float, bound: float, why: str) -> Finding:
    """Check measured <= bound."""
    return Finding(why, measured, bound, _over(measured, bound))


def at_least(measured: float, bound: float, why: str) -> Finding:
    """Check measured >= bound."""
    return Finding(why, measured, bound, _over(bound, measured))


def equal(measured: float, expected: float, why: str, tolerance: float = 0.0) -> Finding:
    """Check measured == expected, or nearly; the ratio is that of the larger to the smaller."""
    low, high = sorted([measured, expected])
    ratio = 1.0 if low == high else high / low if low > 0 else inf
    return Finding(why, measured, expected, ratio / (1 + tolerance))


def combined(parts: Iterable[Finding], when_good: str = "") -> Finding:
    """Return the worst of several findings of one check, with the sentences of all that fail.

    If none fails, the sentence is `when_good`, or all of theirs.
    """
    listed = list(parts)
    worst = max(listed, key=lambda part: part.ratio or 0)
    failed = [part.why for part in listed if part.verdict == CheckVerdict.FAIL]
    why = "; ".join(failed) or when_good or "; ".join(part.why for part in listed)
    return Finding(why, worst.measured, worst.bound, worst.ratio)


def _over(value: float, bound: float) -> float:
    if value <= 0:
        return 0.0
    return value / bound if bound > 0 else inf
