"""What is known of a claim about speed; a slip in a number ends in one line that names it."""

import csv
from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.errors import ConfigError, nearest, one_line
from specmoe.files import given_file

_RATE = (1e-3, 1e6, "give tokens a second, above zero")
_GB = (1e-3, 1e5, "give GB of 10^9 bytes; 1 GiB is 1.074 GB, 1 MB is 0.001 GB")
# Each fact with its least and largest value, and what a value outside may have been. Speeds are
# those of one request, of any so many at once.
FACTS = {
    "baseline_tokens_per_second": _RATE,
    "claimed_tokens_per_second": _RATE,
    "speedup": (1e-3, 1e3, "26 % faster is 1.26, half as fast is 0.5"),
    "gamma": (1, 1024, "give the most tokens drafted in a round"),
    "drafted_per_round": (1e-3, 1024, "give the mean, at most gamma"),
    "acceptance_rate": (0, 1, "give accepted over drafted tokens as a share: 2.6 % is 0.026"),
    "tokens_per_round": (1, 1025, "count the target's own token too: 1 + accepted tokens a round"),
    "draft_tokens_per_second": _RATE,
    "draft_ms": (0.01, 1e5, "give milliseconds a drafted token: 0.007 s are 7; 0 if free"),
    "weights_gb": _GB,
    "active_gb": _GB,
    "experts": (0, 1e5, "give the routed experts of a layer; 0 if dense"),
    "experts_used": (1, 1e5, "give the routed experts that a token visits"),
    "experts_visited": (1, 1e5, "give the mean in a layer in a round's pass"),
    "bandwidth_gb_s": (1, 1e5, "give GB of 10^9 bytes a second: 0.8 TB/s are 800"),
    "requests": (1, 1e5, "give how many requests are decoded at once"),
}
FIELDS = ("name", "source", "chip", *FACTS)
_AT_MOST = {
    "drafted_per_round": "gamma",
    "active_gb": "weights_gb",
    "experts_used": "experts",
    "experts_visited": "experts",
}


class Printed(float):
    """A number with the digits it is printed with: 0.60 may be anything from 0.595 to 0.605."""

    half: float
    """Half a unit of the last digit; none for a whole 0 or 1, which nobody rounds to."""

    def __new__(cls, given: str | float) -> "Printed":
        """Read a number, or the text of one."""
        number = super().__new__(cls, given)
        text = str(given).strip()
        exponent = Decimal(text).as_tuple().exponent if isfinite(number) else 0
        number.half = 0.0 if text in ("0", "1") else 0.5 * 10.0 ** int(exponent)
        return number


class Claim(NamedTuple):
    """A claim: the facts that are known of it, by name."""

    name: str
    facts: Mapping[str, Printed]


def claim_of(given: Mapping[str, Any], place: str, chips: Mapping[str, float]) -> Claim:
    """Return a claim from its facts by name; text of numbers will do, and empty text is unknown.

    `chips` has the bandwidth of each known chip in GB/s. Raises ConfigError, one line that begins
    with `place` and names the field.
    """
    for name in given:
        if name not in FIELDS:
            raise ConfigError(f"{place}: unknown field {name!r}; {nearest(str(name), FIELDS)}")
    given = {name: value for name, value in given.items() if value not in (None, "")}
    facts = {name: _checked(place, name, given[name]) for name in FACTS if name in given}
    for fault in _faults_between(facts):
        raise ConfigError(f"{place}: {fault}")
    if chip := given.get("chip"):
        if chip not in chips:
            raise ConfigError(f"{place}: chip: {chip!r} is unknown; give bandwidth_gb_s")
        facts.setdefault("bandwidth_gb_s", Printed(chips[chip]))
    return Claim(str(given.get("name", "")), facts)


def _faults_between(facts: Mapping[str, float]) -> Iterator[str]:
    for less, more in _AT_MOST.items():
        if less in facts and more in facts and facts[less] > facts[more]:
            yield f"{less}: {facts[less]:g} is more than {more}, {facts[more]:g}"
    if facts.get("experts") and "experts_used" not in facts:
        yield "experts: give experts_used too"
    if "draft_ms" in facts and "draft_tokens_per_second" in facts:
        yield "draft_ms: give this or draft_tokens_per_second, not both"


def _checked(place: str, name: str, value: Any) -> Printed:
    low, high, hint = FACTS[name]
    try:
        number = Printed("no number" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{place}: {name}: {str(value)[:40]!r} is no number; {hint}") from None
    if not (low <= number <= high or (number == 0.0 and name == "draft_ms")):
        fault = f"{number:g} is not within {low:g} and {high:g}; {hint}"
        raise ConfigError(f"{place}: {name}: {fault}")
    return number


def read_claims(
    file: Path, more: dict[str, Any], chips: Mapping[str, float]
) -> Iterator[Claim | ConfigError]:
    """Yield the claim of each line of a CSV whose first line has the names of fields, or its fault.

    `more` are facts of all claims, which those of a line replace.
    """
    try:
        with given_file(file).open(encoding="utf-8-sig", newline="") as text:
            lines = csv.DictReader(text, strict=True)
            for cells in lines:
                place = f"{file}, line {lines.line_num}"
                if None in cells or None in cells.values():
                    yield ConfigError(f"{place}: another number of cells than in the first line")
                    continue
                given = {name: cell.strip() for name, cell in cells.items()}
                known = more | {name: cell for name, cell in given.items() if cell}
                try:
                    yield claim_of(dict.fromkeys(given) | known, place, chips)
                except ConfigError as error:
                    yield error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{file}: it is no CSV in UTF-8: {one_line(error)}") from error
