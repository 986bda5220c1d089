"""What is known of a claim about speed; a slip in a number ends in one line that names it."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

from specmoe.errors import ConfigError, nearest


def _number(low: float, high: float, hint: str, *, or_zero: bool = False) -> Any:
    """Declare a number that may be unknown; the hint says what a value outside may have been."""
    return field(default=None, metadata={"range": (low, high), "hint": hint, "or_zero": or_zero})


def _rate() -> Any:
    return _number(1e-3, 1e6, "give tokens a second, above zero")


def _gigabytes(what: str) -> Any:
    hint = f"give GB of 10^9 bytes of {what}; 1 GiB is 1.074 GB, 1 MB is 0.001 GB"
    return _number(1e-3, 1e5, hint)


@dataclass(frozen=True)
class Claim:
    """A claim; None is not known. Speeds are those of one request, of any so many at once."""

    name: str = ""
    source: str = ""
    baseline_tokens_per_second: float | None = _rate()
    claimed_tokens_per_second: float | None = _rate()
    speedup: float | None = _number(
        1e-3, 1e3, "give the ratio of both speeds: 26 % faster is 1.26, half as fast is 0.5"
    )
    gamma: float | None = _number(1, 1024, "give the most tokens drafted in a round")
    drafted_per_round: float | None = _number(1e-3, 1024, "give the mean, at most gamma")
    acceptance_rate: float | None = _number(
        0, 1, "give accepted over drafted tokens as a share: 2.6 % is 0.026"
    )
    tokens_per_round: float | None = _number(
        1, 1025, "count the target's own token too: 1 + accepted tokens a round"
    )
    draft_tokens_per_second: float | None = _rate()
    draft_ms: float | None = _number(
        0.01, 1e5, "give milliseconds a drafted token: 0.007 s are 7; 0 if free", or_zero=True
    )
    draft_gb: float | None = _gigabytes("what a drafted token reads")
    weights_gb: float | None = _gigabytes("all weights")
    active_gb: float | None = _gigabytes("what a single token reads")
    experts: float | None = _number(0, 1e5, "give the routed experts of a layer; 0 if dense")
    experts_used: float | None = _number(1, 1e5, "give the routed experts that a token visits")
    experts_visited: float | None = _number(1, 1e5, "give the mean in a layer in a round's pass")
    bandwidth_gb_s: float | None = _number(
        1, 1e5, "give GB of 10^9 bytes a second: 0.8 TB/s are 800"
    )
    chip: str = ""
    requests: float | None = _number(1, 1e5, "give how many requests are decoded at once")

    @property
    def speculates(self) -> bool:
        """Whether it is about drafting; else it states the speed of a target alone."""
        speeds = (self.claimed_tokens_per_second, self.speedup)
        rounds = (self.gamma, self.drafted_per_round, self.acceptance_rate, self.tokens_per_round)
        return any(fact is not None for fact in (*speeds, *rounds))


FIELDS = {one.name: one for one in fields(Claim)}
_ORDERED = (
    ("drafted_per_round", "gamma"),
    ("active_gb", "weights_gb"),
    ("experts_used", "experts"),
    ("experts_visited", "experts"),
)


def claim_of(given: Mapping[str, Any], place: str, chips: Mapping[str, float]) -> Claim:
    """Return a claim from its facts by name; text of numbers will do, and empty text is unknown.

    `chips` has the bandwidth of each known chip in GB/s. Raises ConfigError, one line that begins
    with `place` and names the field.
    """
    facts: dict[str, Any] = {}
    for name, value in given.items():
        if name not in FIELDS:
            raise ConfigError(f"{place}: unknown field {name!r}; {nearest(str(name), FIELDS)}")
        if value is None or value == "":
            continue
        try:
            facts[name] = _checked(name, value)
        except ValueError as error:
            raise ConfigError(f"{place}: {name}: {error}") from error
    for fault in _faults_between(facts, chips):
        raise ConfigError(f"{place}: {fault}")
    if "chip" in facts:
        facts.setdefault("bandwidth_gb_s", chips[facts["chip"]])
    return Claim(**facts)


def _checked(name: str, value: Any) -> str | float:
    about = FIELDS[name].metadata
    if not about:
        return str(value)
    low, high = about["range"]
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not isfinite(number):
        raise ValueError(f"{str(value)[:40]!r} is no number; {about['hint']}")
    if not (low <= number <= high or (number == 0 and about["or_zero"])):
        raise ValueError(f"{number:g} is not within {low:g} and {high:g}; {about['hint']}")
    return number


def _faults_between(facts: Mapping[str, Any], chips: Mapping[str, float]) -> Iterator[str]:
    if "chip" in facts and facts["chip"] not in chips:
        known = difflib.get_close_matches(facts["chip"], chips, n=1)
        meant = f"did you mean {known[0]!r}? " if known else ""
        yield f"chip: {facts['chip']!r} is not in the table; {meant}Give bandwidth_gb_s instead"
    for less, more in _ORDERED:
        if less in facts and more in facts and facts[less] > facts[more]:
            yield f"{less}: {facts[less]:g} is more than {more}, {facts[more]:g}"
    if facts.get("experts") and "experts_used" not in facts:
        yield "experts: give experts_used too"
    if "draft_ms" in facts and "draft_tokens_per_second" in facts:
        yield "draft_ms: give this or draft_tokens_per_second, not both"
