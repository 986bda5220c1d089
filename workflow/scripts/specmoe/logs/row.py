"""A row of another program's log, and how a format declares what of it is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """A format: its name, the version that was read, how to know it, and its rows."""

    name: str
    version: str
    # Entries of JSON or the rows of a CSV as mappings; or the whole text.
    knows: Callable[[Any], bool]
    rows: Callable[[Any, str], Iterator[LogRow]]


def take(entry: Mapping[str, Any], declared: Sequence[Field], about: str) -> dict[str, Any]:
    """Return the columns that an entry has; raises SchemaError that names the field.

    `about` is the place of the entry, and what was read of the format.
    """
    found = {}
    for field in declared:
        value: Any = entry
        for key in field.path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None:
            if field.required:
                raise SchemaError(
                    f"{about}: it lacks {field.path}; {_known(entry)}; is the file cut, or has the"
                    " format changed?"
                )
            continue
        found[field.column] = _typed(value, field, about)
    return found


def _known(entry: Mapping[str, Any]) -> str:
    return f"it has {', '.join(sorted(map(str, entry))[:8]) or 'nothing'}"


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
