"""Figures that others report of drafting on MoEs, with sources: rows of `resources/reported/`.

What a source does not say is null: absent rather than interpolated. The README beside the files
explains them.
"""

import csv
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, Field, PositiveFloat, PositiveInt, StringConstraints

from specmoe.config.methods import Method
from specmoe.files import ROOT, read_text

FOLDER: Final = ROOT / "resources/reported"
# Names of models round their sizes: 30B-A3B has 3.3 billion active parameters.
_ALIKE: Final = 0.15

_Words = Annotated[str, StringConstraints(min_length=1, max_length=240)]
_Share = Annotated[float, Field(gt=0, le=1)]
# One that rounds may have: their own token counts.
_Tokens = Annotated[float, Field(ge=1)]
_Method = Method | Literal["other"]


class Reported(BaseModel, frozen=True, extra="forbid"):
    """A row, as its source prints it, and what was computed from that."""

    model: _Words
    engine: _Words | None = None
    printed: _Words
    computed: _Words | None = None
    source: Annotated[str, StringConstraints(pattern=r"^https://[^\s<>\"']+$")]
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}(-\d\d){0,2}$")] | None = None


class Drafting(Reported, frozen=True):
    """A method on a model of so many billions of parameters."""

    active: PositiveFloat | None = None
    total: PositiveFloat | None = None
    method: _Method
    gamma: PositiveInt | None = None
    acceptance_rate: _Share | None = None
    tokens_per_round: _Tokens | None = None

    @property
    def accepted(self) -> float | None:
        """The share of γ drafted tokens that is accepted, if it is said or follows."""
        if self.acceptance_rate is None and self.tokens_per_round and self.gamma:
            return (self.tokens_per_round - 1) / self.gamma
        return self.acceptance_rate


class Acceptance(Drafting, frozen=True):
    """How much of a draft is accepted, on a data set."""

    drafter: _Words | None = None
    thinking: Literal["yes", "no"] | None = None
    data_set: _Words | None = None
    category: _Words | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None


class Routing(Reported, frozen=True):
    """Distinct experts of a layer in a pass over some tokens, and over those of even routing."""

    experts: PositiveInt
    used: PositiveInt
    layer: Annotated[int, Field(ge=0)] | None = None
    width: PositiveInt
    distinct: PositiveFloat
    over_uniform: PositiveFloat
    data: _Words | None = None


class Verification(Reported, frozen=True):
    """The time of a pass over some tokens, over that of one token."""

    experts: PositiveInt | None = None
    used: PositiveInt | None = None
    machine: _Words | None = None
    width: PositiveInt
    cost: PositiveFloat
    ms: PositiveFloat | None = None
    ms_single: PositiveFloat | None = None


class Speedup(Drafting, frozen=True):
    """Decoding with drafting over decoding without: a value, a range or both."""

    machine: _Words | None = None
    engine_date: _Words | None = None
    baseline_tokens_per_second: PositiveFloat | None = None
    claimed_tokens_per_second: PositiveFloat | None = None
    speedup: PositiveFloat | None = None
    low: PositiveFloat | None = None
    high: PositiveFloat | None = None
    interval: _Words | None = None
    measured: _Words | None = None
    retracted: _Words | None = None

    @property
    def middle(self) -> float:
        """The speedup, or the middle of the range that stands for it."""
        return self.speedup or ((self.low or 0) + (self.high or 0)) / 2


_Row = TypeVar("_Row", bound=Reported)


@cache
def read_reported(kind: type[_Row]) -> tuple[_Row, ...]:
    """Return the rows of a file, `acceptance.csv` of `Acceptance`, in its order."""
    name = "speedups" if kind is Speedup else kind.__name__.lower()
    lines = csv.DictReader(read_text(FOLDER / f"{name}.csv").splitlines(), strict=True)
    return tuple(
        kind.model_validate({key: cell for key, cell in line.items() if cell}) for line in lines
    )


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest value."""
    return min(values), max(values)


def accepted_elsewhere(
    total: float, active: float, method: str, gamma: int
) -> tuple[float, float] | None:
    """Return the range of the shares of γ drafted tokens that others report accepted.

    It is of one method, on models of about as many parameters, in all and active; None if nobody
    reports any.
    """

    def alike(row: Acceptance) -> bool:
        sizes: Any = zip((row.total, row.active), (total / 1e9, active / 1e9), strict=True)
        near = all(its and abs(its - own) <= _ALIKE * own for its, own in sizes)
        return near and (row.method, row.gamma) == (method, gamma)

    rows = filter(alike, read_reported(Acceptance))
    shares = [row.accepted for row in rows if row.accepted is not None]
    return span_of(shares) if shares else None


@cache
def passes_elsewhere() -> dict[int, tuple[float, float]]:
    """Return the range of reported costs of an MoE's pass, by its tokens, over a single token's."""
    rows = sorted(read_reported(Verification), key=lambda row: row.width)
    by_width = groupby(rows, lambda row: row.width)
    return {width: span_of([row.cost for row in alike]) for width, alike in by_width}


@cache
def routing_elsewhere() -> tuple[float, float]:
    """Return the range of distinct experts over those of even routing, as trained routers have.

    It is of whole models and passes of any width.
    """
    return span_of([row.over_uniform for row in read_reported(Routing) if row.layer is None])
