"""The rounds of any draft length, from one reading of a target's text by the draft.

Accepted tokens are the target's own. So a round accepts as many tokens as the draft agrees with in
a row from there, and at most as many as it drafts; the next round begins behind them. This plays
what llama-server does (tools/server/server-context.cpp, common/sampling.cpp of llama.cpp):

- The prompt's pass gives the first token. Rounds draft the others, but never the last that the
  limit allows, and a round of a single token left is a plain step.
- A round yields the accepted tokens and one of the target's. On a target that replays, a round that
  accepts fewer tokens than it drafted is followed by a replay, which yields one more.
- Tokens behind the end of a text are not accepted, and the end itself only as the last drafted one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, log
from typing import NamedTuple

import pandas as pd


@dataclass(frozen=True)
class DraftScores:
    """What a draft would have proposed for each token of a text; see `runs.other_tables`."""

    draft_sha256: str
    tokens: tuple[int, ...]
    agrees: tuple[bool, ...]
    confidence: tuple[float, ...]
    lead_nats: tuple[float, ...]
    moved_nats: float


ScoresKey = tuple[str, str, str, str]
"""Engine, target, draft and prompt."""


def scores_by_run(agreement: pd.DataFrame) -> dict[ScoresKey, list[DraftScores]]:
    """Return the readings in the table `agreement`."""
    found: dict[ScoresKey, list[DraftScores]] = {}
    keys = ["engine", "target", "draft", "prompt"]
    for (*key, _), members in agreement.groupby([*keys, "text"]):
        one = members.sort_values("position")
        of_tokens = ("token", "agrees", "confidence", "lead_nats")
        token, agrees, confidence, lead = (tuple(one[name].tolist()) for name in of_tokens)
        digest, moved = str(one["draft_sha256"].iloc[0]), float(one["moved_nats"].iloc[0])
        reading = DraftScores(digest, token, agrees, confidence, lead, moved)
        engine, target, draft, prompt = map(str, key)
        found.setdefault((engine, target, draft, prompt), []).append(reading)
    return found


@dataclass(frozen=True)
class Limits:
    """How a run may go on: the most tokens that it generates, and how its text ends.

    `ended`: its last token is the target's own end. `replays`: its target replays rounds.
    """

    n_predict: int
    ended: bool = False
    replays: bool = False


@dataclass(frozen=True)
class Rounds:
    """The rounds of a run: how many tokens each drafted and accepted, and what came between."""

    drafted_lengths: list[int] = field(default_factory=list)
    accepted_lengths: list[int] = field(default_factory=list)
    replays: int = 0
    single_steps: int = 0


def rounds_from_agreement(agrees: Sequence[bool], gamma: int, limits: Limits) -> Rounds:
    """Return the rounds of γ tokens of a text, given where the draft agrees with it."""
    drafted, accepted = [], []
    replays = single = 0
    at, end = 1, len(agrees)
    while at < end:
        length = min(gamma, limits.n_predict - at - 1)
        if length < 1:
            single += 1
            at += 1
            continue
        held = 0
        while held < min(length, end - at) and agrees[at + held]:
            held += 1
        at += held + 1
        if limits.ended and at > end and held < length:
            held -= 1
        if limits.replays and held < length:
            replays += 1
            at += 1
        drafted.append(length)
        accepted.append(held)
    return Rounds(drafted, accepted, replays, single)


class Counts(NamedTuple):
    """What is counted of a run's rounds, but for what they drafted."""

    rounds: int = 0
    replays: int = 0
    accepted: int = 0


class Outcome(NamedTuple):
    """How many tokens were drafted, and the positions of near ties that fall the other way."""

    drafted_least: int = 0
    drafted_most: int = 0
    ties: tuple[int, ...] = ()

    def joined(self, other: "Outcome") -> "Outcome":
        """Return bounds that hold both, with the fewer ties."""
        least = min(self.drafted_least, other.drafted_least)
        most = max(self.drafted_most, other.drafted_most)
        return Outcome(least, most, min(other.ties, self.ties, key=len))


_Step = tuple[int, Counts, Outcome]
"""A round with its replay, or a step without a draft, after how many tokens it advances by."""


# At one place of a text. A draft that hardly prefers anything leaves more, and then its reading
# tells nothing.
MOST_OUTCOMES = 2000


@cache
def possible_outcomes(
    reading: DraftScores, gamma: int, p_min: float, limits: Limits, tie_nats: float
) -> Mapping[Counts, Outcome]:
    """Return what a run of fixed γ may come to; without near ties or p_min that is one outcome.

    Where the draft's preference leads by no more than `tie_nats`, rounding may decide; the ties are
    as few as there need be. Empty if more than MOST_OUTCOMES are possible.
    """
    end = len(reading.tokens)
    at: dict[int, dict[Counts, Outcome]] = {1: {Counts(): Outcome()}}
    for start in range(1, end):
        states = at.pop(start, {})
        if len(states) > MOST_OUTCOMES:
            return {}
        most = min(gamma, limits.n_predict - start - 1)
        steps = _steps(reading, start, most, p_min, limits, tie_nats) if states else ()
        for advance, more, (least, widest, ties) in steps:
            into = at.setdefault(min(start + advance, end), {})
            for counts, known in states.items():
                sums = Counts(*map(sum, zip(counts, more, strict=True)))
                outcome = Outcome(known[0] + least, known[1] + widest, known.ties + ties)
                into[sums] = outcome.joined(into.get(sums, outcome))
    return at[end]


def _steps(
    reading: DraftScores, start: int, most: int, p_min: float, limits: Limits, tie_nats: float
) -> Iterator[_Step]:
    """Yield each outcome of the round of `most` tokens that begins in place of a token."""
    ties: tuple[int, ...] = ()  # that fell the other way up to here
    for held in range(most):
        at = start + held
        ways = _ways(reading, at, p_min, tie_nats)
        fallen = {way: (*ties, at) if flips else ties for way, flips in ways.items()}
        if "stop" in ways:
            yield _stopped(held, fallen["stop"])
        if "reject" in ways:
            # What is drafted behind the end of a text is not accepted.
            counts = Counts(1, int(limits.replays), held - (at == len(reading.tokens)))
            drafted = Outcome(held + 1 if p_min else most, most, fallen["reject"])
            yield held + 1 + limits.replays, counts, drafted
        if "hold" not in ways:
            return
        ties = fallen["hold"]
    yield _stopped(most, ties)


def _stopped(held: int, ties: tuple[int, ...]) -> _Step:
    """Return a round of which nothing is rejected, or a step without a draft."""
    return held + 1, Counts(1, 0, held) if held else Counts(), Outcome(held, held, ties)


def _ways(reading: DraftScores, at: int, p_min: float, tie_nats: float) -> dict[str, bool]:
    """Return what may happen in place of a token, and whether a tie must fall for it.

    The draft stops before it, what was drafted for it is rejected, or it holds.
    """
    if at == len(reading.tokens):
        return dict.fromkeys(["stop"] * (p_min > 0) + ["reject"], False)
    ways = {}
    above = log(reading.confidence[at] / p_min) if p_min else inf
    if above <= tie_nats:
        ways["stop"] = above >= 0
    if above >= -tie_nats:
        agrees, tie = reading.agrees[at], reading.lead_nats[at] <= tie_nats
        also = {"reject": agrees, "hold": not agrees}
        ways |= {way: flips for way, flips in also.items() if tie or not flips}
    return ways
