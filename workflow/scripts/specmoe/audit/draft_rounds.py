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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pandas as pd


@dataclass(frozen=True)
class DraftScores:
    """What a draft model proposes for each token of a text; see `runs.other_tables`."""

    draft_sha256: str
    agrees: tuple[bool, ...]
    lead_nats: tuple[float, ...]
    moved_nats: float


ScoresKey = tuple[str, str, str, str, tuple[int, ...]]
"""Engine, target, draft (of n-grams the setting), prompt, and the text's tokens."""


def scores_by_run(agreement: pd.DataFrame) -> dict[ScoresKey, DraftScores]:
    """Return the scores of each text in the table `agreement`."""
    scores, columns = {}, ["token", "agrees", "lead_nats"]
    for key, members in agreement.groupby(["engine", "target", "draft", "prompt", "text"]):
        text = members.sort_values("position")
        tokens, agrees, lead = (tuple(text[name].tolist()) for name in columns)
        digest, moved = str(text["draft_sha256"].iloc[0]), float(text["moved_nats"].iloc[0])
        engine, target, draft, prompt, _ = map(str, key)
        scores[engine, target, draft, prompt, tokens] = DraftScores(digest, agrees, lead, moved)
    return scores


class Counts(NamedTuple):
    """The counts of a run's rounds."""

    rounds: int = 0
    replays: int = 0
    accepted: int = 0
    drafted: int = 0


Played = list[Counts]
"""The steps of a text in which n-grams draft."""


def played_by_run(records: Iterable[Mapping[str, Any]]) -> dict[ScoresKey, Played]:
    """Return the steps of each text and n-gram setting, from records of `measure.model_passes`."""
    return {
        (record["engine"], record["target"], setting, text["prompt"], tuple(text["token"])): [
            Counts(*step) for step in steps
        ]
        for record in records
        for text in record["texts"]
        for setting, steps in text["steps"].items()
    }


_NO_TIE = -1.0
# At one position of a text. A draft model that hardly prefers anything leaves more, and then its
# scores decide nothing.
MOST_OUTCOMES = 2000


@cache
def possible_outcomes(
    scores: DraftScores, gamma: int, n_predict: int, replays: bool, tie_nats: float
) -> Mapping[Counts, int]:
    """Return the possible counts of a run of rounds of γ tokens: one outcome without near ties.

    `n_predict` are the most tokens of a run; `replays`: whether the target replays rounds. Where
    the draft model's preference leads by `tie_nats` at most, rounding may decide. Each outcome has
    the fewest ties that must fall the other way. Empty if more than MOST_OUTCOMES are possible.
    """
    end = len(scores.agrees)
    at: dict[int, dict[Counts, int]] = {1: {Counts(): 0}}
    for start in range(1, end):
        states = at.pop(start, {})
        if len(states) > MOST_OUTCOMES:
            return {}
        for more, fallen in _steps(scores, start, gamma, n_predict, replays, tie_nats):
            into = at.setdefault(min(start + 1 + more.accepted + more.replays, end), {})
            for counts, known in states.items():
                sums = Counts(*map(sum, zip(counts, more, strict=True)))
                into[sums] = min(known + fallen, into.get(sums, end))
    return at[end]


def _steps(
    scores: DraftScores, start: int, gamma: int, n_predict: int, replays: bool, tie_nats: float
) -> Iterator[tuple[Counts, int]]:
    """Yield each outcome of the round that begins at a token, and its ties that fall otherwise.

    It yields a token of the target's own, those accepted, and one of its replay.
    """
    drafted, ties = min(gamma, n_predict - start - 1), 0
    for accepted in range(drafted):
        at = start + accepted
        # A token that is drafted behind the end of a text is not accepted.
        ended = at == len(scores.agrees)
        agrees = not ended and scores.agrees[at]
        tie = not ended and scores.lead_nats[at] <= tie_nats
        if tie or not agrees:
            yield Counts(1, int(replays), accepted - ended, drafted), ties + agrees
        if not (tie or agrees):
            return
        ties += not agrees
    yield Counts(int(drafted > 0), 0, drafted, drafted), ties


def steps_from_agreement(
    scores: DraftScores | Played, gamma: int, n_predict: int, replays: bool
) -> list[Counts]:
    """Return the counts of each round of γ tokens, where the draft model's own preferences hold.

    Those of n-grams were played. A step without speculation counts nothing.
    """
    if isinstance(scores, list):
        return scores
    steps, at = [], 1
    while at < len(scores.agrees):
        [(counts, _)] = _steps(scores, at, gamma, n_predict, replays, _NO_TIE)
        steps.append(counts)
        at += 1 + counts.accepted + counts.replays
    return steps
