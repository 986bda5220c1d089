"""The columns of a run that the audit reads, and the form of its findings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from specmoe.config.block import NO_DRAFT, Protocol, Stop
from specmoe.config.methods import METHODS, Method
from specmoe.runs.schema import Row


class CheckVerdict(StrEnum):
    """The outcome of one check of one run."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    NOT_JUDGED = "not judged"  # it applies, and what decides it was not measured


class Level(StrEnum):
    """What a run that fails a check is."""

    IMPOSSIBLE = "impossible"  # no true run can fail it
    IMPLAUSIBLE = "implausible"  # none should: it rests on what such a run usually takes


if TYPE_CHECKING:
    # Its attributes have the types that the schema declares.
    class _Columns(Row):
        def __new__(cls, **columns: Any) -> Self: ...

else:
    _Columns = SimpleNamespace


class Run(_Columns):
    """A row of runs: its columns are its attributes; null is None, a list a tuple."""

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> Self:
        """Return the run of a row of `schema.read_runs`'s frame.

        llama-speculative does not print its rounds. They follow from what it prints: the prompt
        gives the first token, and each round gives one token besides those it accepts.
        """
        run = cls(**{name: _plain(value) for name, value in row.items()})
        if run.protocol != Protocol.PUBLISHED or run.rounds is not None or not run.speculative:
            return run
        if run.generated is None or run.accepted is None:
            return run
        rounds = run.generated - 1 - run.accepted
        return run.changed(rounds=rounds, recovered=(*run.recovered, "rounds"))

    def changed(self, **columns: Any) -> Self:
        """Return the run with other values of some columns."""
        return type(self)(**vars(self) | columns)

    @property
    def speculative(self) -> bool:
        """Whether a draft took part."""
        return self.draft != NO_DRAFT

    @property
    def disturbed(self) -> bool:
        """Whether the machine was disturbed at its last attempt too."""
        return self.taken_away is not None

    @property
    def load(self) -> str | None:
        """The load that it was a part of: its block and side, and the pass through the prompts."""
        if self.load_s is None:
            return None
        side, _, number = self.run.rsplit("/", 2)
        return f"{side}/{number}"

    @property
    def by_model(self) -> bool:
        """Whether a whole second model drafts, all alone."""
        return self.method == METHODS[Method.DRAFT].engine

    @property
    def timed_with(self) -> tuple[str, ...]:
        """Machine, protocol, engine, its options: no bound is made of another machine's times."""
        return self.host, self.protocol, self.engine, self.engine_options

    @property
    def cut(self) -> int:
        """The most tokens that may have been accepted and were cut off.

        A target may end its text among the tokens that a round accepts, and those after it are
        counted all the same.
        """
        return self.gamma if self.stopped_by == Stop.EOS else 0

    @property
    def timed_tokens(self) -> int | None:
        """How many tokens `decode_ms` spans: llama-server times the first with the prompt."""
        if self.generated is None:
            return None
        return self.generated - (self.protocol == Protocol.PAIRED)

    @property
    def passes_after_prompt(self) -> int | None:
        """How many passes over the target follow the prompt's: each gives one token of its own.

        The prompt's pass gives the first token, and a rejected replay gives none. Where a text ends
        within a round there may be more, see `cut`.
        """
        if self.generated is None or (self.speculative and self.accepted is None):
            return None
        due = self.generated - 1 - (self.accepted or 0) + (self.replays_rejected or 0)
        return max(due, (self.rounds or 0) + (self.replays or 0)) if self.cut else due


@dataclass(frozen=True)
class Finding:
    """One check of one run; `ratio` is the measured value over its bound, None if not checked."""

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


def not_applicable(why: str) -> Finding:
    """Return a finding with nothing to check, and the reason."""
    return Finding(why)


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


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(np.asarray(value).tolist())
    return None if pd.isna(value) else value
