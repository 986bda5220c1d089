"""Whether a claim can be true: each bound of the audit by itself, what is lacking, and the answer.

What is left out is taken twice. First as the claim would wish: all drafts are accepted, drafting is
free, rounds draft as few tokens as suits, a mixture shares nothing. A claim that breaks a bound
even so is impossible. Then as it may well be: nothing is accepted, a drafted token takes as long as
one of the target, every round drafts gamma tokens, tokens choose their experts evenly. As far as a
bound goes that holds even so, the claim is possible; between the two it is not decidable without
the fact that was left out.

Nothing limits how slow a program is, so no bound is from below, and no unknown fact puts a claim in
doubt that drafting gains nothing.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Any

from specmoe.audit.bounds import round_width, time_needed
from specmoe.config.measurement import AuditSettings
from specmoe.errors import ConfigError
from specmoe.models.card import Size, split_by_active
from specmoe.plan.machine import bandwidth_by_chip
from specmoe.possible.claim import Claim, claim_of, read_claims
from specmoe.words import counted

GB = 1e9
_ALONE = ("baseline_tokens_per_second", "weights_gb", "bandwidth_gb_s")


class Verdict(StrEnum):
    """What can be said of a claim, or of it by one bound."""

    POSSIBLE = "possible"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "not decidable"


@dataclass(frozen=True)
class Bound:
    """One bound: the claimed value, the most as the claim would wish, and as it may well be."""

    name: str
    claimed: float
    most: float | None  # None: it cannot be had
    surely: float
    missing: tuple[str, ...]  # the facts that would decide
    why: str

    @property
    def verdict(self) -> Verdict:
        """What the bound says of the claim by itself."""
        if self.most is not None and self.claimed > self.most:
            return Verdict.IMPOSSIBLE
        open_to_doubt = self.missing and self.claimed > self.surely
        return Verdict.UNDECIDED if open_to_doubt else Verdict.POSSIBLE


@dataclass(frozen=True)
class Facts:
    """A claim with what follows from it.

    A round is its tokens and its drafted tokens. Between both ends of `rounds`, which are as the
    claim would wish, every bound rises or falls all along; without any nothing limits a round.
    `likely` has what is stated, else that nothing is accepted of gamma tokens; `unknown` are the
    facts that it lacks.
    """

    claim: Claim
    speedup: float | None
    baseline: float | None
    rate: float | None
    steps: float | None  # the time of a drafted token over that of the target alone, if known
    rounds: tuple[tuple[float, float], ...]
    likely: tuple[float, float]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """A claim, its bounds, and what follows."""

    facts: Facts
    bounds: tuple[Bound, ...]
    verdict: Verdict
    without: tuple[str, ...]  # the facts without which it is not decidable

    @property
    def why(self) -> str:
        """What the bounds say that decide; that of all if the claim is possible."""
        deciding = [one for one in self.bounds if one.verdict == self.verdict]
        return "; ".join(f"{one.name}: {one.why}" for one in deciding) or "no bound applies"


def judge(claim: Claim, settings: AuditSettings) -> Judged:
    """Return what can be said of a claim."""
    facts, size = _facts_of(claim), _size(claim, settings)
    timing = _time(facts, 1 - settings.time_tolerance)
    bounds = (*_accounting(facts), *timing, *_bandwidth(facts, size))
    if any(bound.verdict == Verdict.IMPOSSIBLE for bound in bounds):
        return Judged(facts, bounds, Verdict.IMPOSSIBLE, ())
    undecided = [bound for bound in bounds if bound.verdict == Verdict.UNDECIDED]
    without = [fact for bound in undecided for fact in bound.missing]
    drafts = facts.rounds or facts.rate or "acceptance_rate" in claim.facts
    if drafts and facts.speedup is None:
        without += ["speedup"] + ["gamma"] * (not facts.rounds)
    elif not bounds:
        without += [name for name in _ALONE if name not in claim.facts]
    verdict = Verdict.UNDECIDED if without else Verdict.POSSIBLE
    return Judged(facts, bounds, verdict, tuple(dict.fromkeys(without)))


def _facts_of(claim: Claim) -> Facts:
    get = claim.facts.get
    speedup: float | None = get("speedup")
    baseline: float | None = get("baseline_tokens_per_second")
    rate: float | None = get("claimed_tokens_per_second")
    if baseline and rate and not speedup:
        speedup = rate / baseline
    elif speedup and rate and not baseline:
        baseline = rate / speedup
    elif speedup and baseline and not rate:
        rate = baseline * speedup
    alone, draft_ms = get("draft_tokens_per_second"), get("draft_ms")
    spent = 1000 / alone if alone else draft_ms  # ms a drafted token
    steps = 0.0 if spent == 0.0 else spent * baseline / 1000 if spent and baseline else None
    share, stated, gamma = map(get, ("acceptance_rate", "tokens_per_round", "gamma"))
    accepted = 1.0 if share is None else min(1.0, share + share.half)
    # As few are drafted as give the tokens of a round, or none.
    least = max(0.0, stated - stated.half - 1) / (accepted or 1.0) if stated else 0.0
    mean = get("drafted_per_round")
    ends = [mean] if mean else [least, gamma] if stated or gamma else []
    rounds = tuple(
        (stated + stated.half if stated else 1 + accepted * drafted, drafted)
        for drafted in ends
        if drafted is not None
    )
    drafted = mean or gamma or least
    likely = (stated or 1 + (share or 0) * drafted, drafted)
    unknown = ("gamma",) * (mean is None and gamma is None)
    unknown += ("acceptance_rate",) * (share is None and stated is None)
    return Facts(claim, speedup, baseline, rate, steps, rounds, likely, unknown)


def _size(claim: Claim, settings: AuditSettings) -> Size | None:
    """Return the target's size, unless a cache may hold it; a mixture may share nothing."""
    weights, active = claim.facts.get("weights_gb"), claim.facts.get("active_gb")
    if weights is None or weights * GB <= settings.cache_bytes:
        return None
    experts, used = int(claim.facts.get("experts") or 0), int(claim.facts.get("experts_used") or 0)
    always, routed = (0.0, weights * GB) if experts else (weights * GB, 0.0)
    if active is not None:
        always, routed = split_by_active(weights * GB, active * GB, experts, used)
    return Size(round(weights * GB), max(always, 0.0), routed, experts, used, 0, "the claim")


def _accounting(facts: Facts) -> Iterator[Bound]:
    """Compare numbers of the claim that follow from one another, as far as they are rounded."""
    get = facts.claim.facts.get
    speedup, rate = get("speedup"), get("claimed_tokens_per_second")
    baseline = get("baseline_tokens_per_second")
    if speedup is not None and rate is not None and baseline is not None:
        apart = sum(value.half / value for value in (speedup, rate, baseline)) + 1e-9
        low, high = sorted([rate / baseline, speedup])
        why = f"{rate:g} over {baseline:g} tokens/s is {rate / baseline:.4g} times"
        yield Bound("accounting", high, low * (1 + apart), inf, (), f"{why}, claimed {speedup:g}")
    tokens, drafted = get("tokens_per_round"), get("drafted_per_round") or get("gamma")
    if tokens is not None and drafted is not None:
        share = get("acceptance_rate")
        most = 1 + (1.0 if share is None else min(1.0, share + share.half)) * drafted
        why = f"{drafted:g} drafted tokens give {most:.4g} a round, claimed {tokens:g}"
        yield Bound("accounting", tokens - tokens.half, most, inf, (), why)


def _time(facts: Facts, allowed: float) -> Iterator[Bound]:
    """Yield the bound of time: rounds and drafted tokens one by one, as the audit has it.

    A pass takes at least the time of one over a single token.
    """
    if facts.speedup is None:
        return
    get, (tokens, drafted), steps = facts.claim.facts.get, facts.likely, facts.steps
    most = [given / time_needed(1, drafts, 1, steps or 0) for given, drafts in facts.rounds]
    surely = tokens / time_needed(1, drafted, 1, 1.0 if steps is None else steps)
    missing = list(facts.unknown)
    if steps is None and most:
        timed = get("draft_ms") or get("draft_tokens_per_second")
        missing.append("baseline_tokens_per_second" if timed else "draft_tokens_per_second")
    # With all else known, only rounds that draft less can save the claim.
    if not missing and max(most) > most[-1]:
        missing.append("drafted_per_round")
    why = "nothing limits a round of unknown length"
    if most:
        why = counted(f"{tokens:.4g}", "token")
        if "acceptance_rate" in facts.unknown:
            why = f"1 to {max(facts.rounds)[0]:.4g} tokens"
        each = "0 to 1" if steps is None else f"{steps:.4g}"
        limits = " to ".join(dict.fromkeys([f"{surely:.4g}", f"{max(most):.4g}"]))
        why += f" a round that drafts {drafted:.4g} at {each} steps each: at most {limits} times"
    why += f", claimed {facts.speedup:.4g}"
    at_most = max(most) / allowed if most else None
    doubts = tuple(missing) if facts.speedup > 1 else ()
    yield Bound("time", facts.speedup, at_most, surely / allowed, doubts, why)


def _bandwidth(facts: Facts, size: Size | None) -> Iterator[Bound]:
    """Yield the bounds of memory, which delivers the weights that each pass reads.

    As the claim would wish, that are those of a single token. It is likely that the tokens of a
    round choose their experts evenly, and certain which they visit if somebody counted.
    """
    get, bandwidth = facts.claim.facts.get, facts.claim.facts.get("bandwidth_gb_s")
    if size is None or bandwidth is None:
        return
    # Without a word on experts the model may be a mixture, of which a token reads less.
    unsaid = ("experts",) if get("experts") is None and get("active_gb") is None else ()
    if facts.baseline is not None:
        read = size.pass_bytes(1) / GB
        why = f"{facts.baseline:.4g} tokens/s at {read:.4g} GB a pass read"
        why += f" {facts.baseline * read:.4g} GB/s of {bandwidth:g}"
        limits = (None if unsaid else bandwidth / read), bandwidth / read
        yield Bound("bandwidth without a draft", facts.baseline, *limits, unsaid, why)
    if facts.rate is None or not facts.rounds:
        return
    (tokens, drafted), (most_tokens, _) = facts.likely, max(facts.rounds)
    seen, missing = get("experts_visited"), (*unsaid, *facts.unknown)
    width = round_width(1, drafted, get("requests") or 1)
    if seen is not None:
        size = replace(size, seen_experts=((width, seen),))
    elif size.experts:
        missing += ("experts_visited",)
    least, read = size.pass_bytes(1 if seen is None else width) / GB, size.pass_bytes(width) / GB
    surely = bandwidth * tokens / read
    why = f"{facts.rate:.4g} tokens/s at up to {most_tokens:.4g} a pass of {least:.4g} GB read"
    why += f" {facts.rate / most_tokens * least:.4g} GB/s of {bandwidth:g}"
    if read > least:
        why += f"; at even routing a pass over {width:.4g} tokens reads {read:.4g} GB:"
        why += f" at most {surely:.4g} tokens/s"
    most = None if unsaid else bandwidth * most_tokens / least
    doubts = missing if (facts.speedup or inf) > 1 else ()
    yield Bound("bandwidth", facts.rate, most, surely, doubts, why)


def possible(
    audit: str, out: Path, claim: dict[str, Any] | None = None, claims: Path | None = None
) -> None:
    """Print whether a claim can be true, or each of a CSV, whose verdicts go to the folder `out`.

    `audit` is the section of the configuration; with `claims`, `claim` is what all of them share.
    Raises ConfigError for claims that cannot be read, after the answers about the others.
    """
    settings, bandwidths = AuditSettings.model_validate_json(audit), bandwidth_by_chip()
    if not claims:
        if not claim:
            raise ConfigError("config: claim: say what is known, or name a file: claims=FILE")
        print("\n".join(_describe(judge(claim_of(claim, "claim", bandwidths), settings))))
        return
    asked = list(read_claims(claims, claim or {}, bandwidths))
    judged = [judge(one, settings) for one in asked if not isinstance(one, ConfigError)]
    out.mkdir(parents=True, exist_ok=True)
    table = out / f"{claims.stem}_verdicts.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("name", "verdict", "without", "why"))
        for one in judged:
            rows.writerow((one.facts.claim.name, one.verdict, " ".join(one.without), one.why))
    print("\n".join(line for one in judged for line in _describe(one)))
    counts = Counter(one.verdict for one in judged)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    print(f"{counted(len(judged), 'claim')}: {told}\n{table}")
    if faults := [str(one) for one in asked if isinstance(one, ConfigError)]:
        print("\n".join(faults))
        raise ConfigError(
            f"{claims}: {len(faults)} of {len(asked)} lines cannot be read: see above"
        )


def _describe(judged: Judged) -> Iterator[str]:
    claim = judged.facts.claim
    without = f" without {', '.join(judged.without)}" if judged.without else ""
    yield f"{claim.name or 'This claim'}: {judged.verdict.upper()}{without}"
    told = [f"{bound.name}, {bound.verdict}: {bound.why}" for bound in judged.bounds]
    if not {"weights_gb", "bandwidth_gb_s"} <= set(claim.facts):
        told.append("bandwidth, not asked: it takes weights_gb, and bandwidth_gb_s or chip")
    yield from (f"  {line}" for line in told)
