"""What each round of one decoding drafted, and what became of it, from llama-server's debug log.

The log gives the tokens of every pass and how many of them it accepted; the server's answer gives
the generated tokens. The two are checked against each other: the drafted tokens that the log calls
accepted must stand at their place in the answer. A contradiction is an error, never a record.

All methods log which of them drafted. Models also log their candidates with probabilities, but for
the second version of DFlash; what is looked up has none.

Source of the lines: llama.cpp, src/llama-batch.cpp, "id = %6d", with `BATCHES`;
common/speculative.cpp, "draft candidate" and "called impl"; for the first token of a pass
tools/server/server-context.cpp, "slot decode token" and "generate_draft"; for the rest see
`specmoe.engine.server_log`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from specmoe.config.methods import BY_TYPE, Method, is_ngram
from specmoe.engine.server_log import Verification, read_verification
from specmoe.errors import MeasurementError

BATCHES = {"LLAMA_BATCH_DEBUG": "2"}
"""The environment in which the engine logs the tokens of each batch."""

# A line of the log starts with the time and the first letter of its level.
_DEBUG = re.compile(r"[\d.]+ D ")
_CANDIDATE = re.compile(
    r"[\d.]+ D (?:spec +draft: )? - seq_id \d+, draft candidate +(\d+), pos +\d+:"
    r" +(\d+) \( *([\d.]+)\) '"
)
_CALLED = re.compile(r"[\d.]+ D spec \w+: called impl ([\w-]+), .*, gen = (\d+)")
_BEGIN = re.compile(
    r"[\d.]+ D slot .*?\| (?:slot decode token, id=(\d+),"
    r"|generate_draft: id=(\d+),.* #draft=(\d+),)"
)
_READ = re.compile(r"[\d.]+ D ubatch_print: +\d+: id = +(\d+) \(")


class Fate(StrEnum):
    """What a pass did with a token that it read."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"  # the first that differs from the target's own choice
    DROPPED = "dropped"  # after a rejected one


@dataclass(frozen=True)
class Guess:
    """A drafted token, and its probability among the ten likeliest; None if none is logged."""

    token: int
    probability: float | None


@dataclass(frozen=True)
class Pass:
    """One pass of the target over some tokens: the drafted ones, or in a replay the accepted ones.

    `own` is the token that the target chose after the `accepted` ones. A `restored` pass was
    undone, and the next pass, a replay, reads its own token too.
    """

    read: tuple[int, ...]
    accepted: int
    own: int
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

    method: Method | None  # that drafted, of a chain's; None without a draft
    drafted: tuple[Guess, ...]
    passes: tuple[Pass, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that the round added to the text."""
        last = self.passes[-1]
        return (*last.read[: last.accepted], last.own)

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
class _Called:
    """A method drafted so many tokens."""

    method: Method
    drafted: int


@dataclass(frozen=True)
class _Begin:
    """A pass begins after a known token, over so many drafted ones."""

    after: int
    width: int


@dataclass(frozen=True)
class _Read:
    """A token of a batch, of any model; the first batch after a begin is the target's."""

    token: int


_Event = Guess | _Called | _Begin | _Read | Verification


@dataclass(frozen=True)
class _Logged:
    """The events of one round in the log; `read` has the tokens of each pass over a draft."""

    candidates: tuple[Guess, ...]
    called: _Called | None
    begun: tuple[_Begin, ...]
    read: tuple[tuple[int, ...], ...]
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
        rounds.append(_round(number, logged, tokens[given:]))
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
        event = _event(line)
        if event is None:
            continue
        events.append(event)
        if _stands(event):
            yield _logged(events)
            events = []
    if any(not isinstance(event, _Read) for event in events):
        raise MeasurementError("the server's log ends within a round")


def _event(line: str) -> _Event | None:
    """Return what a line of the log tells of, None if nothing of a round."""
    if found := _READ.match(line):
        return _Read(int(found[1]))
    if found := _CANDIDATE.match(line):
        # The likeliest candidate is the drafted token; the others are only logged.
        return Guess(int(found[2]), float(found[3])) if found[1] == "0" else None
    if found := _CALLED.match(line):
        if found[1] not in BY_TYPE:
            raise MeasurementError(f"the server's log names an unknown way of drafting: {found[1]}")
        return _Called(BY_TYPE[found[1]], int(found[2]))
    if found := _BEGIN.match(line):
        alone, before_draft, width = found.groups()
        return _Begin(int(alone or before_draft), int(width or 0))
    # At the debug level the server logs a second time what a pass accepted.
    return None if _DEBUG.match(line) else read_verification(line)


def _stands(event: _Event) -> bool:
    """Return whether a pass ends here that is not undone; without a draft its begin is its end."""
    if isinstance(event, _Begin):
        return not event.width
    return isinstance(event, Verification) and not event.restored


def _logged(events: Sequence[_Event]) -> _Logged:
    """Sort the events of one round."""
    read: list[list[int]] = []
    room = 0  # for tokens of the present pass
    for event in events:
        if isinstance(event, _Begin):
            read.append([])
            room = 1 + event.width
        elif isinstance(event, _Read) and room:
            read[-1].append(event.token)
            room -= 1
    return _Logged(
        candidates=tuple(one for one in events if isinstance(one, Guess)),
        called=next((one for one in events if isinstance(one, _Called)), None),
        begun=tuple(one for one in events if isinstance(one, _Begin)),
        read=tuple(map(tuple, read)),
        verifications=tuple(one for one in events if isinstance(one, Verification)),
    )


def _round(number: int, logged: _Logged, tokens: Sequence[int]) -> Round:
    """Return a round that gave the first of `tokens`."""
    if len(logged.begun) != max(1, len(logged.verifications)):
        ended = len(logged.verifications)
        raise _misfit(number, f"{len(logged.begun)} passes began and {ended} ended")
    if not logged.verifications:
        if logged.called or not tokens:
            raise _misfit(number, "a token was decoded without its draft, or after the last")
        return Round(None, (), (Pass((), 0, tokens[0], restored=False),))
    passes = _passes(number, logged, tokens)
    if logged.called is None or logged.called.drafted != len(passes[0].read):
        raise _misfit(number, f"no method drafted the {len(passes[0].read)} tokens that it read")
    return Round(logged.called.method, _drafted(number, logged, passes[0].read), passes)


def _drafted(number: int, logged: _Logged, read: Sequence[int]) -> tuple[Guess, ...]:
    """Return the drafted tokens, which the first pass read, with their probabilities if logged.

    A model that stops where it is unsure, or drafts beyond the end, has more candidates.
    """
    assert logged.called is not None
    method = logged.called.method
    if not logged.candidates and (is_ngram(method) or method == Method.DFLASH):
        return tuple(Guess(token, None) for token in read)
    guesses = logged.candidates[: len(read)]
    if [guess.token for guess in guesses] != list(read):
        raise _misfit(number, "the tokens that it read are not the draft's likeliest")
    return guesses


def _passes(number: int, logged: _Logged, tokens: Sequence[int]) -> tuple[Pass, ...]:
    """Return the passes over a draft that gave the first of `tokens`."""
    for begin, batch in zip(logged.begun, logged.read, strict=True):
        if len(batch) != 1 + begin.width or batch[0] != begin.after:
            raise _misfit(number, "it does not name the tokens that a pass read")
    read = [batch[1:] for batch in logged.read]
    _refuse_other_widths(number, logged.verifications, [len(one) for one in read])
    last = logged.verifications[-1].accepted
    if last >= len(tokens):
        raise _misfit(number, "it gave more tokens than the answer holds")
    own = [*(replayed[-1] for replayed in read[1:]), tokens[last]]
    passes = tuple(
        Pass(batch, one.accepted, chosen, one.restored)
        for batch, one, chosen in zip(read, logged.verifications, own, strict=True)
    )
    _refuse_other_tokens(number, passes, tokens)
    return passes


def _refuse_other_widths(
    number: int, verifications: Sequence[Verification], widths: Sequence[int]
) -> None:
    """Check that each pass judged what it read, and each replay reads what the pass before gave."""
    for one, width in zip(verifications, widths, strict=True):
        undone_though_accepted = one.restored and one.accepted == width
        if one.drafted != width or one.accepted > width or undone_though_accepted:
            raise _misfit(
                number, f"{one.accepted} of {one.drafted} tokens were accepted, of {width} to read"
            )
    for one, width in zip(verifications, widths[1:], strict=False):
        if width != one.accepted + 1:
            raise _misfit(number, f"a replay read {width} tokens after {one.accepted} accepted")


def _refuse_other_tokens(number: int, passes: Sequence[Pass], tokens: Sequence[int]) -> None:
    last = passes[-1]
    if last.read[: last.accepted] != tuple(tokens[: last.accepted]):
        raise _misfit(number, "the drafted tokens called accepted are not those of the answer")
    for one, replay in pairwise(passes):
        if replay.read[:-1] != one.read[: one.accepted]:
            raise _misfit(number, "a replay read other tokens than those that were accepted")
    for one in passes:
        if one.own in one.read[one.accepted : one.accepted + 1]:
            raise _misfit(number, "a drafted token called rejected is the one of the answer")


def _misfit(number: int, what: str) -> MeasurementError:
    return MeasurementError(f"the server's log contradicts its answer in round {number}: {what}")
