"""Whether a claim can be true: each bound of the audit by itself, and what is lacking.

What is left out is taken twice. First as the claim would wish: all drafts are accepted, drafting is
free, rounds draft as few tokens as suits, a mixture shares nothing. A claim that breaks a bound
even so is impossible. Then as it may well be: nothing is accepted, a drafted token takes as long as
one of the target, every round drafts gamma tokens, tokens choose their experts evenly. As far as a
bound goes that holds even so, the claim is possible; between the two it is not decidable without
the fact that was left out.

Nothing limits how slow a program is, so no bound is from below.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from specmoe.audit.limits import round_width, time_needed
from specmoe.config.audit import AuditSettings
from specmoe.possible.claim import Claim
from specmoe.possible.facts import GB, Facts, brief, rounding
from specmoe.words import counted


class Verdict(StrEnum):
    """What can be said of a claim, or of it by one bound."""

    POSSIBLE = "possible"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "not decidable"


@dataclass(frozen=True)
class Bound:
    """One bound: the claimed value, the most as the claim would wish, and as it may well be.

    `most` is None where the bound cannot be had. `missing` are the facts that would decide.
    """

    name: str
    unit: str  # of the three values: `times` (the baseline) or `tokens/s`
    claimed: float
    most: float | None
    surely: float
    missing: tuple[str, ...]
    why: str

    @property
    def verdict(self) -> Verdict:
        """What the bound says of the claim by itself."""
        if self.most is not None and self.claimed > self.most:
            return Verdict.IMPOSSIBLE
        open_to_doubt = self.missing and self.claimed > self.surely
        return Verdict.UNDECIDED if open_to_doubt else Verdict.POSSIBLE


@dataclass(frozen=True)
class Judged:
    """A claim, its bounds, and what follows."""

    facts: Facts
    bounds: tuple[Bound, ...]
    verdict: Verdict
    without: tuple[str, ...]  # the facts without which it is not decidable
    most_speedup: float | None
    most_tokens_per_second: float | None
    needed_acceptance: float | None  # for the claimed speedup at the claimed drafts, maybe above 1

    @property
    def why(self) -> str:
        """The sentence of the bound that decides, that of the tightest if the claim is possible."""
        deciding = [bound for bound in self.bounds if bound.verdict == self.verdict]
        if not deciding:
            return "no bound applies"
        tight = max(deciding, key=lambda bound: bound.claimed / bound.most if bound.most else 0)
        return f"{tight.name}: {tight.why}"


def judge(claim: Claim, settings: AuditSettings) -> Judged:
    """Return what can be said of a claim."""
    facts = Facts(claim, settings)
    bounds = [*_accounting(facts)]
    if claim.speculates:
        bounds += [*_rounds(facts), *_drafting(facts)]
    bounds += [*_one_set(facts), *_even_routing(facts)]
    verdict, without = _verdict(facts, bounds)
    return Judged(
        facts, tuple(bounds), verdict, without, *_most(facts, bounds), _needed_acceptance(facts)
    )


def _verdict(facts: Facts, bounds: list[Bound]) -> tuple[Verdict, tuple[str, ...]]:
    if any(bound.verdict == Verdict.IMPOSSIBLE for bound in bounds):
        return Verdict.IMPOSSIBLE, ()
    open_ones = [bound for bound in bounds if bound.verdict == Verdict.UNDECIDED]
    without = dict.fromkeys(fact for bound in open_ones for fact in bound.missing)
    if facts.claim.speculates and facts.speedup is None:
        without |= dict.fromkeys(["speedup"] + ["gamma"] * (not facts.rounds))
    if not facts.claim.speculates and not bounds:
        needed = ("baseline_tokens_per_second", "weights_gb", "bandwidth_gb_s")
        without |= dict.fromkeys(one for one in needed if getattr(facts.claim, one) is None)
    return (Verdict.UNDECIDED if without else Verdict.POSSIBLE), tuple(without)


def _accounting(facts: Facts) -> Iterator[Bound]:
    """Compare numbers of the claim that follow from one another, as far as they are rounded."""
    one = facts.claim
    claimed, baseline = one.claimed_tokens_per_second, one.baseline_tokens_per_second
    if one.speedup is not None and claimed is not None and baseline is not None:
        found = claimed / baseline
        apart = sum(rounding(value) / value for value in (one.speedup, claimed, baseline)) + 1e-9
        ratio = f"{claimed:g} over {baseline:g} tokens/s"
        why = f"{ratio} is {brief(found)} times, not {one.speedup:g}"
        low, high = sorted([found, one.speedup])
        yield Bound("accounting", "times", high, low * (1 + apart), inf, (), why)
    tokens, gamma, share = one.tokens_per_round, one.gamma, one.acceptance_rate
    if tokens is None:
        return
    if gamma is not None:
        why = f"{tokens:g} tokens a round, and drafts of {gamma:g} give {1 + gamma:g} at most"
        yield Bound("accounting", "tokens", tokens, 1 + gamma, inf, (), why)
    drafted = gamma if one.drafted_per_round is None else one.drafted_per_round
    if share is not None and drafted is not None and facts.accepted is not None:
        most = 1 + facts.accepted * drafted + rounding(tokens)
        why = (
            f"{tokens:g} tokens a round, and {_share(share)} of {drafted:g} drafted tokens give"
            f" {brief(1 + share * drafted)}"
        )
        yield Bound("accounting", "tokens", tokens, most, inf, (), why)


def _rounds(facts: Facts) -> Iterator[Bound]:
    """Yield the bound of rounds: a pass takes at least the time of one over a single token."""
    if facts.speedup is None:
        return
    drafted, share = facts.drafted, facts.claim.acceptance_rate
    most = max((tokens for tokens, _ in facts.rounds), default=None)
    surely, missing = facts.claim.tokens_per_round or 1.0, []
    if facts.claim.tokens_per_round is not None:
        why = f"a round gives {_tokens(surely)} and"
    elif share is not None and drafted is not None:
        surely = 1 + share * drafted
        why = f"1 + {drafted:g} x {_share(share)} = {_tokens(surely)} a round, which"
    else:
        facts_of_rounds = {"gamma": drafted, "acceptance_rate": share}
        missing = [name for name, value in facts_of_rounds.items() if value is None]
        some = "an unknown number of" if drafted is None else f"1 to {1 + drafted:g}"
        why = f"a round gives {some} tokens and"
    why += " takes a step of the target or longer"
    yield _of_time("rounds", facts, most, surely, missing, why)


def _drafting(facts: Facts) -> Iterator[Bound]:
    """Yield the bound of draft time: rounds and drafted tokens one by one, as the audit has it."""
    one, speedup = facts.claim, facts.speedup
    if speedup is None or not facts.rounds:
        return
    least, known = facts.least_draft_steps, facts.draft_steps
    ceilings = [tokens / time_needed(1, drafted, 1, least) for tokens, drafted in facts.rounds]
    most, with_most_drafted = max(ceilings), ceilings[-1]
    drafted = facts.rounds[0][1] if facts.drafted is None else facts.drafted
    tokens = one.tokens_per_round or 1 + (one.acceptance_rate or 0) * drafted
    surely = tokens / time_needed(1, drafted, 1, 1.0 if known is None else known)
    missing = []
    if facts.drafted is None:
        missing.append("gamma")
    if one.acceptance_rate is None and one.tokens_per_round is None:
        missing.append("acceptance_rate")
    if known is None:
        speed = one.draft_ms is None and one.draft_tokens_per_second is None
        missing.append("draft_tokens_per_second" if speed else "baseline_tokens_per_second")
    # With all else known, only rounds that draft less can save the claim.
    less = most > with_most_drafted
    if not missing and less:
        missing.append("drafted_per_round")
    of_round = f"{_tokens(tokens)} a round that drafts {brief(drafted)}"
    if known is not None:
        why = f"{of_round} at {brief(known)} steps each: at most {brief(surely)} times"
        why += f"; {brief(most)} if rounds draft less" if less else ""
    else:
        room = max(0.0, facts.rounds[-1][0] / speedup - 1) / drafted if drafted else inf
        why = f"{of_round}: a drafted token may take {brief(room)} steps of the target"
        why += f"; its bytes take {brief(least)} at least" if least else ""
    yield _of_time("draft time", facts, most, surely, missing, why)


def _of_time(
    name: str, facts: Facts, most: float | None, surely: float, missing: list[str], why: str
) -> Bound:
    """Return a bound of a speedup, with what the audit allows for timing."""
    allowed = 1 - facts.settings.time_tolerance
    assert facts.speedup is not None  # see the callers
    most = None if most is None else most / allowed
    return Bound(name, "times", facts.speedup, most, surely / allowed, tuple(missing), why)


def _one_set(facts: Facts) -> Iterator[Bound]:
    """Yield the bounds of bandwidth: every pass reads what a single token needs."""
    size, bandwidth = facts.size, facts.claim.bandwidth_gb_s
    if size is None or bandwidth is None:
        return
    single = size.pass_bytes(1)
    # Without a word on experts the model may be a mixture, of which a token reads less.
    dense = facts.claim.experts is None and facts.claim.active_gb is None
    missing = ("experts",) if dense else ()
    for what, rate in (("without a draft", facts.baseline), ("claimed", facts.rate)):
        if rate is None:
            continue
        rounds = [(1.0, 0.0)] if what == "without a draft" else facts.rounds
        of_rounds = [(tokens, single + drafted * facts.draft_bytes) for tokens, drafted in rounds]
        if not of_rounds:
            continue
        tokens, read = max(of_rounds, key=lambda one: one[0] / one[1])
        most = bandwidth * GB * tokens / read
        why = (
            f"{what}, {brief(rate)} tokens/s at up to {brief(tokens)} a pass of {brief(read / GB)}"
            f" GB read {brief(rate / tokens * read / GB)} GB/s of {bandwidth:g}"
        )
        surely = most
        if what == "claimed" and facts.claim.tokens_per_round is None and facts.accepted is None:
            surely, missing = bandwidth * GB / read, (*missing, "acceptance_rate")
        yield Bound("bandwidth", "tokens/s", rate, None if dense else most, surely, missing, why)


def _even_routing(facts: Facts) -> Iterator[Bound]:
    """Yield the bound of the experts that a round is expected to visit, or was seen to."""
    size, bandwidth, one = facts.size, facts.claim.bandwidth_gb_s, facts.claim
    if size is None or not size.experts or bandwidth is None or facts.rate is None:
        return
    if not facts.rounds or not one.speculates:
        return
    tokens, drafted = max(facts.rounds, key=lambda each: each[1])
    width = round_width(1, drafted, one.requests or 1)
    seen = one.experts_visited
    if seen is not None:
        size = replace(size, seen_experts=((width, seen),))
    read = size.pass_bytes(width) + drafted * facts.draft_bytes
    most = bandwidth * GB * tokens / read
    visits = f"{brief(size.visited(width))} of {size.experts} experts"
    visits += " at even routing" if seen is None else ""
    why = (
        f"a pass over {brief(width)} tokens visits {visits} and reads {brief(read / GB)} GB, so"
        f" {bandwidth:g} GB/s give {brief(most)} tokens/s at most"
    )
    rigid, missing = (None, ("experts_visited",)) if seen is None else (most, ())
    yield Bound("expected experts", "tokens/s", facts.rate, rigid, most, missing, why)


def _most(facts: Facts, bounds: list[Bound]) -> tuple[float | None, float | None]:
    """Return the largest speedup and speed that break no bound, before any tolerance for timing."""
    allowed, baseline = 1 - facts.settings.time_tolerance, facts.baseline
    times, rates = [], []
    for bound in bounds:
        if bound.most is None or bound.name == "accounting" or "without a draft" in bound.why:
            continue
        if bound.unit == "times":
            times.append(bound.most * allowed)
            rates += [times[-1] * baseline] if baseline else []
        else:
            rates.append(bound.most)
            times += [bound.most / baseline] if baseline else []
    return min(times, default=None), min(rates, default=None)


def _needed_acceptance(facts: Facts) -> float | None:
    """Return the share of the drafted tokens that the claimed speedup takes; None if not known."""
    if facts.speedup is None or not facts.drafted:
        return None
    tokens = facts.speedup * time_needed(1, facts.drafted, 1, facts.least_draft_steps)
    return max(0.0, (tokens - 1) / facts.drafted)


def _tokens(count: float) -> str:
    return counted(brief(count), "token")


def _share(value: float) -> str:
    return f"{brief(100 * value)} %"
