"""What each round of one decoding drafted, and what became of it, from llama-server's debug log.

The log gives the drafted tokens and how many of them every pass accepted; the server's answer gives
the generated tokens. The two are checked against each other: the drafted tokens that the log calls
accepted must stand at their place in the answer. A contradiction is an error, never a record.

Source of the lines: llama.cpp, common/speculative.cpp, "draft candidate"; for the first token of a
pass tools/server/server-context.cpp, "slot decode token" and "generate_draft"; for the rest see
`specmoe.engine.server_log`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest

from specmoe.engine.server_log import Verification, read_verification
from specmoe.errors import MeasurementError

# A line of the log starts with the time and the first letter of its level.
_DEBUG = re.compile(r"[\d.]+ D ")
_CANDIDATE = re.compile(
    r"[\d.]+ D spec .*?draft candidate +(\d+), pos +\d+: +(\d+) \( *([\d.]+)\) '"
)
_BEGIN = re.compile(r"[\d.]+ D slot .*?\| (slot decode token,|generate_draft:) id=(\d+),")


class Fate(StrEnum):
    """What a pass did with a token that it read."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"  # the first that differs from the target's own choice
    DROPPED = "dropped"  # after a rejected one


@dataclass(frozen=True)
class Guess:
    """A drafted token, and its probability among the draft's ten likeliest."""

    token: int
    probability: float


@dataclass(frozen=True)
class Pass:
    """One pass of the target over some tokens: the drafted ones, or in a replay the accepted ones.

    `own` is the token that the target chose after the `accepted` ones. A `restored` pass was
    undone, and the next pass, a replay, read its own token. If that replay rejected the token
    again, the log does not name it, and `own` is None.
    """

    read: tuple[int | None, ...]
    accepted: int
    own: int | None
    restored: bool

    @property
    def fates(self) -> list[Fate]:
        """The fate of each token that the pass read."""
        fates = [Fate.ACCEPTED] * self.accepted
        rest = len(self.read) - self.accepted
        if rest:
            fates += [Fate.REJECTED] + [Fate.DROPPED] * (rest - 1)
        return fates


@dataclass(frozen=True)
class Round:
    """One draft and the passes that verify it; or no draft, and one pass that gives one token."""

    drafted: tuple[Guess, ...]
    passes: tuple[Pass, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that the round added to the text."""
        last = self.passes[-1]
        return tuple(
            token for token in (*last.read[: last.accepted], last.own) if token is not None
        )

    @property
    def accepted(self) -> int:
        """How many drafted tokens were added; a replay may drop what an earlier pass accepted."""
        return min(one.accepted for one in self.passes)


@dataclass(frozen=True)
class RoundCounts:
    """Totals of some rounds; `rounds` counts those with a draft, `passes` those of the target."""

    rounds: int
    drafted: int
    accepted: int
    passes: int
    replays: int


@dataclass(frozen=True)
class _Begin:
    """A pass begins after a known token, over a draft or without one."""

    after: int
    over_draft: bool


_Event = Guess | _Begin | Verification


@dataclass(frozen=True)
class _Logged:
    """The events of one round in the log."""

    drafted: tuple[Guess, ...]
    begun: tuple[_Begin, ...]
    verifications: tuple[Verification, ...]


def read_rounds(log: str, tokens: Sequence[int]) -> list[Round]:
    """Return the rounds that gave `tokens`, from the debug log of a server with one request.

    The first token comes from the prompt's pass and belongs to no round. Raises MeasurementError
    if the log contradicts the tokens.
    """
    rounds: list[Round] = []
    given = 1
    for number, logged in enumerate(_logged_rounds(log), start=1):
        if given > len(tokens) or {begin.after for begin in logged.begun} != {tokens[given - 1]}:
            raise _misfit(number, f"it does not continue token {given} of the answer")
        rounds.append(Round(logged.drafted, _passes(number, logged, tokens[given:])))
        given += len(rounds[-1].tokens)
    if given != len(tokens):
        raise MeasurementError(
            f"the server's log has {given} tokens and its answer {len(tokens)}; this engine may"
            " log its rounds in another way"
        )
    return rounds


def count(rounds: Sequence[Round]) -> RoundCounts:
    """Return the totals of some rounds."""
    return RoundCounts(
        rounds=sum(bool(one.drafted) for one in rounds),
        drafted=sum(len(one.drafted) for one in rounds),
        accepted=sum(one.accepted for one in rounds),
        passes=sum(len(one.passes) for one in rounds),
        replays=sum(len(one.passes) - 1 for one in rounds),
    )


def check_counters(counts: RoundCounts, counters: Mapping[str, float]) -> None:
    """Raise MeasurementError unless the server's counters equal the totals of the same names."""
    for name, counter in counters.items():
        if getattr(counts, name) != counter:
            raise MeasurementError(
                f"the server's log contradicts its counters: {name} {getattr(counts, name)} by the"
                f" log, {counter:g} by the counter"
            )


def _logged_rounds(log: str) -> Iterator[_Logged]:
    """Yield the log round by round; a round ends with the first pass that is not undone."""
    events: list[_Event] = []
    for line in log.splitlines():
        for event in _events(line):
            events.append(event)
            if _stands(event):
                yield _Logged(
                    drafted=tuple(one for one in events if isinstance(one, Guess)),
                    begun=tuple(one for one in events if isinstance(one, _Begin)),
                    verifications=tuple(one for one in events if isinstance(one, Verification)),
                )
                events = []
    if events:
        raise MeasurementError("the server's log ends within a round")


def _events(line: str) -> Sequence[_Event]:
    if found := _CANDIDATE.match(line):
        # The likeliest candidate is the drafted token; the others are only logged.
        return [Guess(int(found[2]), float(found[3]))] if found[1] == "0" else []
    if found := _BEGIN.match(line):
        return [_Begin(after=int(found[2]), over_draft=found[1] == "generate_draft:")]
    # At the debug level the server logs a second time what a pass accepted.
    if _DEBUG.match(line):
        return []
    verification = read_verification(line)
    return [verification] if verification else []


def _stands(event: _Event) -> bool:
    """Return whether a pass ends here that is not undone; without a draft its begin is its end."""
    if isinstance(event, _Begin):
        return not event.over_draft
    return isinstance(event, Verification) and not event.restored


def _passes(number: int, logged: _Logged, tokens: Sequence[int]) -> tuple[Pass, ...]:
    """Return the passes of a round that gave the first of `tokens`."""
    if len(logged.begun) != max(1, len(logged.verifications)):
        ended = len(logged.verifications)
        raise _misfit(number, f"{len(logged.begun)} passes began and {ended} ended")
    if not logged.verifications:
        if logged.drafted or not tokens:
            raise _misfit(number, "a token was decoded without its draft, or after the last")
        return (Pass((), 0, tokens[0], restored=False),)
    _refuse_other_widths(number, logged)
    if logged.verifications[-1].accepted >= len(tokens):
        raise _misfit(number, "it gave more tokens than the answer holds")
    passes: list[Pass] = []
    read: tuple[int | None, ...] = tuple(guess.token for guess in logged.drafted)
    for verification, replay in zip_longest(logged.verifications, logged.verifications[1:]):
        # A replay that accepts all it reads accepts the own token of the pass before it.
        stands = replay is None or replay.accepted == replay.drafted
        own = tokens[verification.accepted] if stands else None
        passes.append(Pass(read, verification.accepted, own, verification.restored))
        read = (*read[: verification.accepted], own)
    _refuse_other_tokens(number, passes, tokens)
    return tuple(passes)


def _refuse_other_widths(number: int, logged: _Logged) -> None:
    """Check that the first pass read the draft, and each replay what the pass before accepted."""
    width = len(logged.drafted)
    for one in logged.verifications:
        undone_though_accepted = one.restored and one.accepted == width
        if one.drafted != width or one.accepted > width or undone_though_accepted:
            raise _misfit(
                number, f"{one.accepted} of {one.drafted} tokens were accepted, of {width} to read"
            )
        width = one.accepted + 1


def _refuse_other_tokens(number: int, passes: Sequence[Pass], tokens: Sequence[int]) -> None:
    last = passes[-1]
    if last.read[: last.accepted] != tuple(tokens[: last.accepted]):
        raise _misfit(number, "the drafted tokens called accepted are not those of the answer")
    for one in passes:
        rejected = one.read[one.accepted : one.accepted + 1]
        if one.own is not None and one.own in rejected:
            raise _misfit(number, "a drafted token called rejected is the one of the answer")


def _misfit(number: int, what: str) -> MeasurementError:
    return MeasurementError(f"the server's log contradicts its answer in round {number}: {what}")
