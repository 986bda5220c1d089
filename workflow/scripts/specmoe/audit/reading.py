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
from enum import Enum, auto
from functools import cache
from math import inf, log
from typing import NamedTuple

import pandas as pd


@dataclass(frozen=True)
class Reading:
    """What a draft would have proposed in place of each token of a text; see `runs.agreement`."""

    draft_sha256: str
    tokens: tuple[int, ...]
    agrees: tuple[bool, ...]
    confidence: tuple[float, ...]
    lead_nats: tuple[float, ...]
    moved_nats: float


ReadingKey = tuple[str, str, str, str]
"""Engine, target, draft and prompt."""


def readings_of(agreement: pd.DataFrame) -> dict[ReadingKey, list[Reading]]:
    """Return the readings in the table `runs.agreement`."""
    found: dict[ReadingKey, list[Reading]] = {}
    keys = ["engine", "target", "draft", "prompt"]
    for (*key, _), members in agreement.groupby([*keys, "text"]):
        one = members.sort_values("position")
        reading = Reading(
            draft_sha256=str(one["draft_sha256"].iloc[0]),
            tokens=tuple(one["token"].tolist()),
            agrees=tuple(one["agrees"].tolist()),
            confidence=tuple(one["confidence"].tolist()),
            lead_nats=tuple(one["lead_nats"].tolist()),
            moved_nats=float(one["moved_nats"].iloc[0]),
        )
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

    drafted_least: int
    drafted_most: int
    ties: tuple[int, ...]

    def joined(self, other: "Outcome | None") -> "Outcome":
        """Return bounds that hold both, with the fewer ties."""
        if other is None:
            return self
        return Outcome(
            min(self.drafted_least, other.drafted_least),
            max(self.drafted_most, other.drafted_most),
            min(other.ties, self.ties, key=len),
        )


# At one place of a text. A draft that hardly prefers anything leaves more, and then its reading
# tells nothing.
MOST_OUTCOMES = 2000


@cache
def possible_outcomes(
    reading: Reading, gamma: int, p_min: float, limits: Limits, tie_nats: float
) -> Mapping[Counts, Outcome]:
    """Return what a run of fixed γ may come to; without near ties or p_min that is one outcome.

    Where the draft's preference leads by no more than `tie_nats`, rounding may decide; the ties are
    as few as there need be. Empty if more than MOST_OUTCOMES are possible.
    """
    run = _Run(reading, gamma, p_min, limits, tie_nats)
    end = len(reading.tokens)
    at: dict[int, dict[Counts, Outcome]] = {1: {Counts(): Outcome(0, 0, ())}}
    for start in range(1, end):
        states = at.pop(start, {})
        if len(states) > MOST_OUTCOMES:
            return {}
        for step in run.steps_from(start) if states else ():
            into = at.setdefault(min(start + step.advance, end), {})
            for counts, (least, most, ties) in states.items():
                added = Counts(*map(sum, zip(counts, step.counts, strict=True)))
                drafted = least + step.drafted.drafted_least, most + step.drafted.drafted_most
                outcome = Outcome(*drafted, (*ties, *step.drafted.ties))
                into[added] = outcome.joined(into.get(added))
    return at[end]


class _Step(NamedTuple):
    """A round with its replay, or a step without a draft; by how many tokens it advances."""

    advance: int
    counts: Counts
    drafted: Outcome


class _Way(Enum):
    """What may happen in place of a token of the text."""

    STOP = auto()  # the draft stops before it: nothing is rejected
    REJECT = auto()  # the target rejects what was drafted for it
    END = auto()  # the text ended before it, and what was drafted for it is not accepted
    HOLD = auto()  # it is drafted and accepted


@dataclass(frozen=True)
class _Run:
    """A run of fixed γ; the fields are the arguments of `possible_outcomes`."""

    reading: Reading
    gamma: int
    p_min: float
    limits: Limits
    tie_nats: float

    def steps_from(self, start: int) -> Iterator[_Step]:
        """Yield each outcome of the round that begins in place of a token of the text."""
        most = min(self.gamma, self.limits.n_predict - start - 1)
        ties: tuple[int, ...] = ()
        for held in range(most):
            at = start + held
            ways = {way: (*ties, at) if flips else ties for way, flips in self._ways(at).items()}
            for way in ways.keys() - {_Way.HOLD}:
                yield self._step(way, held, most, ways[way])
            if _Way.HOLD not in ways:
                return
            ties = ways[_Way.HOLD]
        yield self._step(_Way.STOP, most, most, ties)

    def _ways(self, at: int) -> dict[_Way, bool]:
        """Return what may happen in place of a token, and whether a tie must fall for it."""
        if at == len(self.reading.tokens):
            return dict.fromkeys([_Way.STOP] * (self.p_min > 0) + [_Way.END], False)
        ways = {}
        above = log(self.reading.confidence[at] / self.p_min) if self.p_min else inf
        if above <= self.tie_nats:
            ways[_Way.STOP] = above >= 0
        if above >= -self.tie_nats:
            agrees, tie = self.reading.agrees[at], self.reading.lead_nats[at] <= self.tie_nats
            also = {_Way.REJECT: agrees, _Way.HOLD: not agrees}
            ways |= {way: flips for way, flips in also.items() if tie or not flips}
        return ways

    def _step(self, way: _Way, held: int, most: int, ties: tuple[int, ...]) -> _Step:
        if way is _Way.STOP:
            counts = Counts(1, 0, held) if held else Counts()
            return _Step(held + 1, counts, Outcome(held, held, ties))
        replay = int(self.limits.replays)
        counts = Counts(1, replay, held - (way is _Way.END))
        drafted = Outcome(held + 1 if self.p_min else most, most, ties)
        return _Step(held + 1 + replay, counts, drafted)
