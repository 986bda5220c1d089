"""A row of another program's log, and how a format declares what of it is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from specmoe.errors import SchemaError


@dataclass(frozen=True)
class LogRow:
    """What a log says of one generation, or of the mean over several; None is not in the log.

    Columns that `runs.parquet` has too mean the same.
    """

    format: str
    place: str  # in the file, in words
    engine: str | None = None
    model: str | None = None
    method: str | None = None
    prompt: str | None = None
    concurrency: int | None = None
    n_prompt: int | None = None
    generated: int | None = None
    prompt_ms: float | None = None
    decode_ms: float | None = None
    tokens_per_second: float | None = None  # of one request
    gamma: int | None = None
    rounds: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    acceptance_rate: float | None = None
    tokens_per_round: float | None = None
    # The share of rounds in which the token at each position and all before it were accepted.
    joint: tuple[float, ...] | None = None
    accepted_lengths: tuple[int, ...] | None = None
    draft_ms: float | None = None  # logged time of all drafting
    size_bytes: int | None = None  # of the model's weights

    @property
    def speculates(self) -> bool:
        """Whether the log says that something was drafted."""
        return any((self.drafted, self.rounds, self.acceptance_rate, self.joint, self.gamma))

    def cells(self) -> dict[str, Any]:
        """Return the row by column for a CSV, lists as JSON."""
        values = {name: getattr(self, name) for name in COLUMNS}
        return {key: list(one) if isinstance(one, tuple) else one for key, one in values.items()}


COLUMNS = tuple(field.name for field in fields(LogRow))


class Field(NamedTuple):
    """A field of a format: the column that it fills, its path of keys, its kind and scale."""

    column: str
    path: str
    kind: type = float
    scale: float = 1.0  # what the value is multiplied with
    required: bool = False


class Format(NamedTuple):
    """A format: its name, the version that was read, how to know an entry, and its columns.

    An entry is an object of JSON, a row of a CSV, or what a log says of a request. `columns` gets
    it with its place in words; None is no row.
    """

    name: str
    version: str
    knows: Callable[[Mapping[str, Any]], bool]
    columns: Callable[[Mapping[str, Any], str], dict[str, Any] | None]

    def about(self, place: str) -> str:
        """Return the place of an entry, and what was read of the format."""
        return f"{place}, {self.name}, read in {self.version}"

    def rows(self, entry: Mapping[str, Any], place: str) -> list[LogRow]:
        """Return the row of an entry, if it is one; raises SchemaError that names the field."""
        found = self.columns(entry, self.about(place))
        return [] if found is None else [LogRow(self.name, place, **found)]


def take(entry: Mapping[str, Any], declared: Sequence[Field], about: str) -> dict[str, Any]:
    """Return the columns that an entry has; raises SchemaError about it that names the field."""
    found = {}
    for field in declared:
        value: Any = entry
        for key in field.path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None:
            if field.required:
                names = ", ".join(sorted(map(str, entry))[:8]) or "nothing"
                raise SchemaError(
                    f"{about}: it lacks {field.path}; it has {names}; is the file cut, or has the"
                    " format changed?"
                )
            continue
        found[field.column] = _typed(value, field, about)
    return found


def _typed(value: Any, field: Field, about: str) -> Any:
    if field.kind is str:
        return str(value)
    try:
        number = float(value)
        if isinstance(value, bool) or not 0 <= number < 1e18:
            raise ValueError
        return field.kind(number * field.scale)
    except (TypeError, ValueError, OverflowError):
        shown = str(value)[:40]
        raise SchemaError(
            f"{about}: {field.path}: {shown!r} is no number from 0 on; has the format changed?"
        ) from None


def lengths_of(histogram: Any, first: int, about: str) -> list[int]:
    """Return how often each length from `first` on was counted; raises SchemaError."""
    try:
        counts = {int(length) - first: int(count) for length, count in dict(histogram).items()}
    except (TypeError, ValueError):
        counts = {}
    if min(counts, default=-1) < 0 or max(counts) > 1024 or min(counts.values()) < 0:
        counts = {}
    if not sum(counts.values()):
        raise SchemaError(f"{about} has no counts by length; has the format changed?")
    return [counts.get(length, 0) for length in range(max(counts) + 1)]


def shares(counts: Sequence[int], rounds: int) -> tuple[float, ...]:
    """Return the share of rounds of each count."""
    return tuple(count / rounds for count in counts)


def from_lengths(lengths: Sequence[int]) -> dict[str, Any]:
    """Return the columns that follow from how many rounds accepted 0, 1, ... tokens."""
    rounds = sum(lengths)
    accepted = sum(length * count for length, count in enumerate(lengths))
    reached = [sum(lengths[position:]) for position in range(1, len(lengths))]
    return {
        "accepted_lengths": tuple(lengths),
        "rounds": rounds,
        "accepted": accepted,
        "tokens_per_round": 1 + accepted / rounds,
        "joint": shares(reached, rounds),
    }
