"""The rounds of any draft length, from a draft model's scores of a target's text.

Accepted tokens are the target's own. So a round accepts the tokens in a row that the draft model
agrees with, and at most as many as it drafts; the next round begins behind them. The rules are
those of llama-server (tools/server/server-context.cpp, common/sampling.cpp of llama.cpp):

- The prompt's pass gives the first token. Rounds draft the others, but never the last that the
  limit allows. A single token left is decoded without speculation.
- A round yields the accepted tokens and one of the target's. On a target that replays, a round that
  accepts fewer tokens than it drafted is followed by a replay, which yields one more.
- Tokens behind the end of a text are not accepted, and the end itself only as the last drafted one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf, log
from typing import NamedTuple

import pandas as pd


@dataclass(frozen=True)
class DraftScores:
    """What a draft model proposes for each token of a text; see `runs.other_tables`."""

    draft_sha256: str
    tokens: tuple[int, ...]
    agrees: tuple[bool, ...]
    confidence: tuple[float, ...]
    lead_nats: tuple[float, ...]
    moved_nats: float


ScoresKey = tuple[str, str, str, str]
"""Engine, target, draft and prompt."""


def scores_by_run(agreement: pd.DataFrame) -> dict[ScoresKey, list[DraftScores]]:
    """Return the scores of each text in the table `agreement`."""
    found: dict[ScoresKey, list[DraftScores]] = {}
    keys = ["engine", "target", "draft", "prompt", "text"]
    columns = ["token", "agrees", "confidence", "lead_nats"]
    for key, members in agreement.groupby(keys):
        text = members.sort_values("position")
        token, agrees, confidence, lead = (tuple(text[name].tolist()) for name in columns)
        digest, moved = str(text["draft_sha256"].iloc[0]), float(text["moved_nats"].iloc[0])
        scores = DraftScores(digest, token, agrees, confidence, lead, moved)
        engine, target, draft, prompt, _ = map(str, key)
        found.setdefault((engine, target, draft, prompt), []).append(scores)
    return found


@dataclass(frozen=True)
class Limits:
    """The limits of a run."""

    n_predict: int  # the most tokens
    ended: bool = False  # the last token is the target's own end
    replays: bool = False  # the target replays rounds


class Counts(NamedTuple):
    """The counts of a run's rounds that do not depend on what they drafted."""

    rounds: int = 0
    replays: int = 0
    accepted: int = 0


class Outcome(NamedTuple):
    """The bounds of drafted tokens, and the fewest near ties that fall the other way."""

    drafted_least: int = 0
    drafted_most: int = 0
    ties: int = 0

    def joined(self, other: "Outcome") -> "Outcome":
        """Return bounds that hold both, with the fewer ties."""
        least, most, ties = zip(self, other, strict=True)
        return Outcome(min(least), max(most), min(ties))


_Step = tuple[int, Counts, Outcome]
"""The tokens of a round with its replay, or of a step without speculation, and what it adds."""

_NO_TIE = -1.0
# At one position of a text. A draft model that hardly prefers anything leaves more, and then its
# scores decide nothing.
MOST_OUTCOMES = 2000


@cache
def possible_outcomes(
    scores: DraftScores, gamma: int, p_min: float, limits: Limits, tie_nats: float
) -> Mapping[Counts, Outcome]:
    """Return the possible outcomes of a run of fixed γ: one without near ties or p_min.

    Where the draft model's preference leads by `tie_nats` at most, rounding may decide. Each
    outcome has the fewest ties. Empty if more than MOST_OUTCOMES are possible.
    """
    end = len(scores.tokens)
    at: dict[int, dict[Counts, Outcome]] = {1: {Counts(): Outcome()}}
    for start in range(1, end):
        states = at.pop(start, {})
        if len(states) > MOST_OUTCOMES:
            return {}
        most = min(gamma, limits.n_predict - start - 1)
        steps = _steps(scores, start, most, p_min, limits, tie_nats) if states else ()
        for advance, more, adds in steps:
            into = at.setdefault(min(start + advance, end), {})
            for counts, known in states.items():
                sums = Counts(*map(sum, zip(counts, more, strict=True)))
                outcome = Outcome(*map(sum, zip(known, adds, strict=True)))
                into[sums] = outcome.joined(into.get(sums, outcome))
    return at[end]


def _steps(
    scores: DraftScores, start: int, most: int, p_min: float, limits: Limits, tie_nats: float
) -> Iterator[_Step]:
    """Yield each outcome of the round of `most` tokens that begins at a token."""

    def stopped(accepted: int, ties: int) -> _Step:
        """Return a round that rejects nothing, or a step without speculation."""
        counts = Counts(1, 0, accepted) if accepted else Counts()
        return accepted + 1, counts, Outcome(accepted, accepted, ties)

    ties = 0  # that fell the other way up to here
    for accepted in range(most):
        at = start + accepted
        events = _events(scores, at, p_min, tie_nats)
        fallen = {event: ties + flips for event, flips in events.items()}
        if "stop" in events:
            yield stopped(accepted, fallen["stop"])
        if "reject" in events:
            # A token that is drafted behind the end of a text is not accepted.
            counts = Counts(1, int(limits.replays), accepted - (at == len(scores.tokens)))
            drafted = Outcome(accepted + 1 if p_min else most, most, fallen["reject"])
            yield accepted + 1 + limits.replays, counts, drafted
        if "accept" not in events:
            return
        ties = fallen["accept"]
    yield stopped(most, ties)


def _events(scores: DraftScores, at: int, p_min: float, tie_nats: float) -> dict[str, bool]:
    """Return what may happen at a token, and whether a near tie must fall the other way for it.

    The draft model stops before it, or its token there is rejected or accepted.
    """
    if at == len(scores.tokens):
        return dict.fromkeys(["stop"] * (p_min > 0) + ["reject"], False)
    events = {}
    above = log(scores.confidence[at] / p_min) if p_min else inf
    if above <= tie_nats:
        events["stop"] = above >= 0
    if above >= -tie_nats:
        agrees, tie = scores.agrees[at], scores.lead_nats[at] <= tie_nats
        verdicts = {"reject": agrees, "accept": not agrees}
        events |= {event: flips for event, flips in verdicts.items() if tie or not flips}
    return events


class Rounds(NamedTuple):
    """The tokens that each round of a run drafted and accepted, and its steps without a round."""

    drafted_lengths: list[int]
    accepted_lengths: list[int]
    single_steps: int


def rounds_from_agreement(scores: DraftScores, gamma: int, limits: Limits) -> Rounds:
    """Return the rounds of γ tokens of a text, where the draft model's own preferences hold."""
    drafted, accepted, single, at = [], [], 0, 1
    while at < len(scores.tokens):
        most = min(gamma, limits.n_predict - at - 1)
        [(advance, counts, outcome)] = _steps(scores, at, most, 0.0, limits, _NO_TIE)
        if counts.rounds:
            drafted.append(outcome.drafted_most)
            accepted.append(counts.accepted)
        else:
            single += 1
        at += advance
    return Rounds(drafted, accepted, single)
