"""Claims of others about speed, judged by the bounds of the audit.

A fact that a claim does not state is assumed twice. First in favour of the claim: all draft tokens
are accepted, drafting is free, rounds draft as few tokens as suits, an MoE has no shared weights. A
claim that breaks a bound even so is impossible. Then against it: nothing is accepted, a drafted
token takes as long as one of the target, every round drafts gamma tokens, routing is uniform. A
claim that holds a bound even so is possible. Between the two it is not decidable without the fact.

Nothing limits how slow a program is. So no bound is from below, and no unknown fact makes a claim
doubtful that drafting gains nothing. Speeds are those of one request. Where that is impossible and
several are decoded at once, they may be the sum over these.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from math import inf, isfinite, prod
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.audit.limits import LIMITS, Limits
from specmoe.config.base import resource
from specmoe.config.engines import COUNTS_SINCE
from specmoe.errors import ConfigError, nearest, one_line
from specmoe.files import ROOT, json_of, read_text
from specmoe.hardware.description import known_chips
from specmoe.models.info import Size, split_by_active
from specmoe.models.reported import routing_elsewhere
from specmoe.text import fill_template

# Each fact with its least and largest value, and a hint for values outside.
FACTS: dict[str, tuple[float, float, str]] = resource("claims/facts")
_RATES = ("claimed_tokens_per_second", "baseline_tokens_per_second")
_SPEEDS = ("speedup", *_RATES)
FIELDS = ("name", "source", "chip", *FACTS)
# llama.cpp before COUNTS_SINCE dropped partly accepted rounds of targets whose state is restored,
# or counted the target's own token as accepted.
_BY_OLD_COUNTERS = {"acceptance_rate", "tokens_per_round"}
_AT_MOST = {
    "drafted_per_round": "gamma",
    "active_gb": "weights_gb",
    "experts_used": "experts",
    "experts_visited": "experts",
}


class Printed(float):
    """A number with its printed digits: 0.60 may be anything from 0.595 to 0.605."""

    half: float
    """Half a unit of the last digit; none for a whole 0 or 1."""

    def __new__(cls, given: str | float, half: float | None = None) -> "Printed":
        """Read a number, or the text of one, with what `half` may be. Raises ValueError."""
        number, text = super().__new__(cls, given), str(given)
        exponent = Decimal(text).as_tuple().exponent if isfinite(number) else 0
        of_digits = 0.0 if text in ("0", "1") else 0.5 * 10.0 ** int(exponent)
        number.half = of_digits if half is None else half
        return number


@dataclass
class Claim:
    """A claim, its facts by name, and what follows from them.

    A round is its tokens and its drafted tokens. `rounds` has both ends in favour of the claim,
    between which every bound is monotonic; without any nothing limits a round. `likely` has the
    stated round, else that nothing of gamma tokens is accepted. `accepted` is the highest share it
    may mean; `unknown` are missing facts.
    """

    name: str
    facts: Mapping[str, Printed]

    def __post_init__(self) -> None:
        """Derive the others; a speed that does not follow from them is null."""
        get = self.facts.get
        speedup, rate, baseline = map(get, _SPEEDS)
        # Any two of them give the third.
        self.speedup = speedup or (rate and baseline and rate / baseline)
        self.baseline = baseline or (rate and speedup and rate / speedup)
        self.rate = rate or (baseline and speedup and baseline * speedup)
        draft_rate = get("draft_tokens_per_second")
        ms: float | None = 1000 / draft_rate if draft_rate else get("draft_ms")
        # The time of a drafted token over a baseline token's, if known.
        self.steps = 0.0 if ms == 0 else ms and self.baseline and ms * self.baseline / 1000
        share, stated, gamma = map(get, ("acceptance_rate", "tokens_per_round", "gamma"))
        self.accepted = 1.0 if share is None else min(1.0, share + share.half)
        # As few are drafted as give the tokens of a round, or none.
        least = max(0.0, stated - stated.half - 1) / (self.accepted or 1.0) if stated else 0.0
        mean = get("drafted_per_round")
        ends = [mean] if mean else [least, gamma] if stated or gamma else []
        most = stated + stated.half if stated else None
        self.rounds = [(most or 1 + self.accepted * end, end) for end in ends if end is not None]
        drafted = mean or gamma or least
        self.likely = stated or 1 + (share or 0) * drafted, drafted
        self.unknown = ("gamma",) * (mean is None and gamma is None)
        self.unknown += ("acceptance_rate",) * (share is None and stated is None)


def claim_of(given: Mapping[str, Any], place: str, chips: Mapping[str, Any]) -> Claim:
    """Return a claim from its facts by name, numbers or their text; empty text is unknown.

    `chips` has the entry of each known chip. Raises ConfigError, one line that begins with `place`
    and names the field.
    """
    if unknown := [str(name) for name in given if name not in FIELDS]:
        named = f"unknown field{'s' * (len(unknown) > 1)} {', '.join(map(repr, unknown))}"
        hint = nearest(unknown[0] if len(unknown) == 1 else "", FIELDS)
        raise ConfigError(f"{place}: {named}; {hint}")
    # Markdown sets numbers in bold.
    texts = {name: "" if fact is None else str(fact).strip(" \t*`") for name, fact in given.items()}
    given = {name: text for name, text in texts.items() if text}
    facts = {name: _checked(place, name, given[name]) for name in FACTS if name in given}
    for fault in _errors_between(facts):
        raise ConfigError(f"{place}: {fault}")
    if facts.get("old_counters"):
        facts = {name: fact for name, fact in facts.items() if name not in _BY_OLD_COUNTERS}
    if chip := given.get("chip"):
        if chip not in chips:
            # None that is near is taken, not even if it is the only one: names stand for several.
            words = chip.lower().split()
            ways = [repr(name) for name in chips if all(word in name.lower() for word in words)]
            ways.append("bandwidth_gb_s")
            raise ConfigError(f"{place}: chip: {chip!r} is unknown; give {' or '.join(ways)}")
        facts.setdefault("bandwidth_gb_s", Printed(chips[chip]["gb_per_second"]))
    return Claim(str(given.get("name", "")), facts)


def _errors_between(facts: Mapping[str, float]) -> Iterator[str]:
    for less, more in _AT_MOST.items():
        if less in facts and more in facts and facts[less] > facts[more]:
            yield f"{less}: {facts[less]:g} is more than {more}, {facts[more]:g}"
    if facts.get("experts") and "experts_used" not in facts:
        yield "experts: give experts_used too"
    if "draft_ms" in facts and "draft_tokens_per_second" in facts:
        yield "draft_ms: give this or draft_tokens_per_second, not both"


def _checked(place: str, name: str, text: str) -> Printed:
    low, high, hint = FACTS[name]
    try:
        share = name == "acceptance_rate"
        number = Printed(re.sub(" ?%$", "e-2", text) if share else text.rstrip("×x"))
    except ValueError:
        raise ConfigError(f"{place}: {name}: {text[:40]!r} is no number; {hint}") from None
    if not (low <= number <= high or (number == 0.0 and name == "draft_ms")):
        fault = f"{number:g} is not within {low:g} and {high:g}; {hint}"
        raise ConfigError(f"{place}: {name}: {fault}")
    return number


_RULE = re.compile(r"^[|: -]+$")  # of a table of Markdown, below its names


def read_claims(file: Path, chips: Mapping[str, Any]) -> Iterator[Claim | ConfigError]:
    """Yield the claim of each line of a table whose first line names fields, or its error.

    The table is a CSV, of semicolons or tabs too, or one of Markdown.
    """
    text = read_text(file).splitlines(keepends=True)
    first = text[0].lstrip() if text else ""
    separator = "|" if first.startswith("|") else max(",;\t", key=first.count)
    if separator == "|":  # the line below the names is empty then, and no claim
        text = [_RULE.sub("", line.strip()).removeprefix("|").removesuffix("|") for line in text]
    try:
        lines = csv.DictReader(text, strict=True, delimiter=separator)
        lines.fieldnames = [name.strip() for name in lines.fieldnames or ()]
        claim_of(dict.fromkeys(lines.fieldnames), f"{file}, line 1", chips)
        for cells in lines:
            place = f"{file}, line {lines.line_num}"
            try:
                if None in (*cells, *cells.values()):
                    raise ConfigError(f"{place}: another number of cells than of names")
                yield claim_of(cells, place, chips)
            except ConfigError as error:
                yield error
    except csv.Error as error:
        raise ConfigError(f"{file}: it is no CSV: {one_line(error)}") from error


class Verdict(StrEnum):
    """The verdict on a claim, or of one bound on it."""

    POSSIBLE = "possible"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "not decidable"
    AS_A_SUM = "possible as a sum"  # over its requests, and impossible as of one


@dataclass(frozen=True)
class Bound:
    """A bound: the claimed value, and the most in favour of the claim and against it."""

    name: str
    claimed: float
    most: float
    surely: float
    missing: tuple[str, ...]  # the facts that would decide
    why: str
    rounding: float  # the factor by which the digits of the claim's numbers may move it

    @property
    def limit(self) -> float:
        """The claimed value above which it is impossible."""
        return self.most * self.rounding

    @property
    def verdict(self) -> Verdict:
        """The verdict of this bound."""
        if self.claimed > self.limit:
            return Verdict.IMPOSSIBLE
        open_to_doubt = self.missing and self.claimed > self.surely
        return Verdict.UNDECIDED if open_to_doubt else Verdict.POSSIBLE


class Judged(NamedTuple):
    """A claim, its bounds and its verdict."""

    claim: Claim
    bounds: tuple[Bound, ...]
    verdict: Verdict
    without: tuple[str, ...]  # the facts without which it is not decidable


def judge(claim: Claim, limits: Limits = LIMITS) -> Judged:
    """Return the verdict on a claim."""
    alone, requests = _judge(claim, limits), claim.facts.get("requests", 1)
    if alone.verdict != Verdict.IMPOSSIBLE or requests <= 1:
        return alone
    stated = {name: claim.facts[name] for name in _RATES if name in claim.facts}
    of_one = {name: Printed(rate / requests, rate.half / requests) for name, rate in stated.items()}
    summed = _judge(Claim(claim.name, {**claim.facts, **of_one}), limits)
    if summed.verdict == Verdict.IMPOSSIBLE:
        return alone
    broken = [bound for bound in alone.bounds if bound.verdict == Verdict.IMPOSSIBLE]
    sums = [replace(bound, name=f"{bound.name}, of one of {requests:g}") for bound in summed.bounds]
    return summed._replace(bounds=(*broken, *sums), verdict=Verdict.AS_A_SUM)


def _judge(claim: Claim, limits: Limits) -> Judged:
    """Return the verdict on a claim whose speeds are of one request."""
    timing, size = _time(claim, 1 - limits.time_tolerance), _size(claim, limits)
    bounds = (*_accounting(claim), *timing, *_bandwidth(claim, size))
    if any(bound.verdict == Verdict.IMPOSSIBLE for bound in bounds):
        return Judged(claim, bounds, Verdict.IMPOSSIBLE, ())
    undecided = [bound for bound in bounds if bound.verdict == Verdict.UNDECIDED]
    without = [fact for bound in undecided for fact in bound.missing]
    drafts = claim.rounds or claim.rate or "acceptance_rate" in claim.facts
    if drafts and claim.speedup is None:
        without += ["speedup"] + ["gamma"] * (not claim.rounds)
    elif not bounds:
        needed = ("baseline_tokens_per_second", "weights_gb", "bandwidth_gb_s")
        without += [name for name in needed if name not in claim.facts]
    verdict = Verdict.UNDECIDED if without else Verdict.POSSIBLE
    return Judged(claim, bounds, verdict, tuple(dict.fromkeys(without)))


def _size(claim: Claim, limits: Limits) -> Size | None:
    """Return the target's size, unless a cache may hold it; an MoE may have no shared weights."""
    get, weights = claim.facts.get, claim.facts.get("weights_gb")
    if weights is None or weights * 1e9 <= limits.cache_bytes:
        return None
    experts, used = (int(get(name) or 0) for name in ("experts", "experts_used"))
    active = get("active_gb", weights * used / experts if experts else weights)
    always, routed = split_by_active(weights * 1e9, active * 1e9, experts, used)
    return Size(round(weights * 1e9), max(always, 0.0), routed, experts, used, 0)


def _accounting(claim: Claim) -> Iterator[Bound]:
    """Compare numbers of the claim that follow from one another, up to their rounding."""
    get = claim.facts.get
    speedup, rate, baseline = map(get, _SPEEDS)
    if speedup is not None and rate is not None and baseline is not None:
        low, high = sorted([rate / baseline, speedup])
        why = f"{rate:g} over {baseline:g} tokens/s is {rate / baseline:.4g} times"
        why, apart = f"{why}, claimed {speedup:g}", _rounding(claim, *_SPEEDS)
        yield Bound("accounting", high, low, inf, (), why, apart)
    tokens, drafted = get("tokens_per_round"), get("drafted_per_round") or get("gamma")
    if tokens is not None and drafted is not None:
        most = 1 + claim.accepted * drafted
        why = f"{drafted:g} drafted tokens give {most:.4g} a round, claimed {tokens:g}"
        yield Bound("accounting", tokens - tokens.half, most, inf, (), why, 1.0)


def _rounding(claim: Claim, *names: str) -> float:
    """Return the most by which the digits of stated numbers may change their quotient."""
    stated = [claim.facts[name] for name in names if claim.facts.get(name)]
    return prod(number / (number - number.half) for number in stated) + 1e-9


def _time(claim: Claim, allowed: float) -> Iterator[Bound]:
    """Yield the bound of time: a round takes one step, and each of its drafted tokens `steps`."""
    if claim.speedup is None:
        return
    get, (tokens, drafted), steps = claim.facts.get, claim.likely, claim.steps
    most = [given / (1 + drafts * (steps or 0)) for given, drafts in claim.rounds]
    surely = tokens / (1 + drafted * (1.0 if steps is None else steps))
    missing = list(claim.unknown)
    if steps is None:
        timed = get("draft_ms") or get("draft_tokens_per_second")
        missing.append("baseline_tokens_per_second" if timed else "draft_tokens_per_second")
    # With all else known, only rounds that draft less can save the claim.
    if not missing and max(most) > most[-1]:
        missing.append("drafted_per_round")
    why = f"rounds that draft {drafted:.4g} surely gain {surely:.4g} times"
    why = f"{why if most else 'rounds of unknown length gain any number'}; claimed"
    why += f" {claim.speedup:.4g}"
    doubts = tuple(missing) if claim.speedup > 1 else ()
    at_most = max(most, default=inf) / allowed
    apart = _rounding(claim, *_SPEEDS, "draft_ms", "draft_tokens_per_second")
    yield Bound("time", claim.speedup, at_most, surely / allowed, doubts, why, apart)


def _bandwidth(claim: Claim, size: Size | None) -> Iterator[Bound]:
    """Yield the bounds of memory, which delivers the weights that each pass reads.

    In favour of the claim these are a single token's. Against it routing is uniform, unless the
    activated experts were counted. Trained routers lie between; what others report of them is said
    and is no bound.
    """
    get, bandwidth = claim.facts.get, claim.facts.get("bandwidth_gb_s")
    if size is None or bandwidth is None:
        return
    # Where experts are not stated the model may be an MoE, of which a token reads less.
    unsaid = ("experts",) if get("experts") is None and get("active_gb") is None else ()
    apart = _rounding(claim, *_SPEEDS, "weights_gb", "active_gb", "bandwidth_gb_s")
    if claim.baseline is not None:
        read = size.pass_bytes(1) / 1e9
        why = f"{claim.baseline:.4g} tokens/s at {read:.4g} GB a pass read"
        why += f" {claim.baseline * read:.4g} GB/s of {bandwidth:g}"
        most, alone = bandwidth / read, "bandwidth of the baseline"
        yield Bound(alone, claim.baseline, inf if unsaid else most, most, unsaid, why, apart)
    if claim.rate is None or not claim.rounds:
        return
    (tokens, drafted), (most_tokens, _) = claim.likely, max(claim.rounds)
    seen, missing = get("experts_visited"), (*unsaid, *claim.unknown)
    n_tokens = (get("requests") or 1) * (1 + drafted)
    trained = ""
    if seen is not None:
        size = replace(size, seen_experts=((n_tokens, seen),))
    elif size.experts:
        missing += ("experts_visited",)
        few, _ = routing_elsewhere()
        visited = max(few * size.evenly_visited(n_tokens), size.experts_used)
        fewer = replace(size, seen_experts=((n_tokens, visited),)).pass_bytes(n_tokens) / 1e9
        trained = f", or {bandwidth * tokens / fewer:.4g} with {few:.2f} of the experts of uniform"
        trained += " routing, the fewest reported of trained routers"
    read = size.pass_bytes(n_tokens) / 1e9
    least = size.pass_bytes(1) / 1e9 if seen is None else read
    most, surely = bandwidth * most_tokens / least, bandwidth * tokens / read
    why = f"{bandwidth:g} GB/s surely give {surely:.4g} tokens/s, at {read:.4g} GB a pass over"
    why += f" {n_tokens:.4g} tokens{trained}, and at {least:.4g} GB {most:.4g}"
    why += f"; claimed {claim.rate:.4g}"
    doubts = missing if (claim.speedup or inf) > 1 else ()
    yield Bound("bandwidth", claim.rate, inf if unsaid else most, surely, doubts, why, apart)


def check_claim(claim: str) -> None:
    """Print the verdict on a claim, its facts as JSON, or on each of a table, its path.

    Raises ConfigError for claims that cannot be read, after the verdicts on the others.
    """
    if claim == "{}":
        raise ConfigError("config: claim: say what is known, or name a file: claim=FILE")
    chips = known_chips()
    try:
        facts = json_of(claim) if claim.startswith("{") else None
    except ValueError as error:
        raise ConfigError(f"config: claim: {error}; correct it") from error
    asked = [claim_of(facts, "claim", chips)] if facts else [*read_claims(Path(claim), chips)]
    if not asked:
        raise ConfigError(f"{claim}: it has no claim below its first line; give one a line")
    judged = [line if isinstance(line, ConfigError) else judge(line) for line in asked]
    counts = Counter(line.verdict for line in judged if isinstance(line, Judged))
    known = {"verdicts": Verdict, "infinity": inf, "since": COUNTS_SINCE}
    given = {"judged": judged, "counts": counts, "table": not facts}
    print(fill_template(ROOT / "paper/claims.txt.j2", **given, **known), end="")
    if faults := len(asked) - counts.total():
        raise ConfigError(f"{claim}: {faults} of {len(asked)} lines cannot be read: see above")
