"""What each round of one decoding drafted, and what became of it, from llama-server's debug log.

The log gives the tokens of every pass and how many of them it accepted; the server's answer gives
the generated tokens. The two are checked against each other: the drafted tokens that the log calls
accepted must stand at their place in the answer. A contradiction is an error, never a record.

Source of the lines: llama.cpp, src/llama-batch.cpp, "id = %6d", with `BATCHES`;
common/speculative.cpp, "draft candidate" and "called impl"; for the first token of a pass
tools/server/server-context.cpp, "slot decode token" and "generate_draft"; for the rest see
`specmoe.engine.server_log`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from specmoe.config.methods import BY_TYPE, Method, is_ngram
from specmoe.engine.server_log import Verification, read_verification
from specmoe.errors import MeasurementError

BATCHES = {"LLAMA_BATCH_DEBUG": "2"}
"""The environment in which the engine logs the tokens of each batch."""

# A line of the log starts with the time and the first letter of its level.
_DEBUG = re.compile(r"[\d.]+ D ")
# The likeliest candidate is the drafted token; the others are only logged.
_CANDIDATE = re.compile(
    r"[\d.]+ D (?:spec +draft: )? - seq_id \d+, draft candidate +0, pos +\d+:"
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


class _MisfitError(Exception):
    """A round of the log contradicts the answer; the message says how."""


@dataclass
class _LoggedPass:
    """A pass begins after a known token, over so many drafted ones; `batch` are all that it read.

    The batches of a draft are logged too: the first after the begin is the target's.
    """

    after: int
    width: int
    batch: list[int] = field(default_factory=list)


@dataclass
class _LoggedRound:
    """The lines of one round; it ends with the first pass that is not undone."""

    candidates: list[Guess] = field(default_factory=list)
    method: Method | None = None
    drafted: int = 0
    passes: list[_LoggedPass] = field(default_factory=list)
    verdicts: list[Verification] = field(default_factory=list)

    def add(self, line: str) -> bool:
        """Read a line; returns whether it ends the round."""
        if found := _READ.match(line):
            if self.passes and len(self.passes[-1].batch) <= self.passes[-1].width:
                self.passes[-1].batch.append(int(found[1]))
        elif found := _CANDIDATE.match(line):
            self.candidates.append(Guess(int(found[1]), float(found[2])))
        elif found := _CALLED.match(line):
            if self.method is None:
                self.method, self.drafted = _method_of(found[1]), int(found[2])
        elif found := _BEGIN.match(line):
            alone, before_draft, width = found.groups()
            self.passes.append(_LoggedPass(int(alone or before_draft), int(width or 0)))
            return not width
        # At the debug level the server logs a second time what a pass accepted.
        elif not _DEBUG.match(line) and (verdict := read_verification(line)):
            self.verdicts.append(verdict)
            return not verdict.restored
        return False


def read_rounds(log: str, tokens: Sequence[int]) -> list[Round]:
    """Return the rounds that gave `tokens`, from the debug log of a server with one request.

    The first token comes from the prompt's pass and belongs to no round. Raises MeasurementError
    if the log contradicts the tokens.
    """
    rounds: list[Round] = []
    given = 1
    for number, logged in enumerate(_logged_rounds(log), start=1):
        try:
            after = {one.after for one in logged.passes}
            continues = given <= len(tokens) and after == {tokens[given - 1]}
            _require(continues, f"it does not continue token {given} of the answer")
            rounds.append(_round(logged, tokens[given:]))
        except _MisfitError as error:
            raise MeasurementError(
                f"the server's log contradicts its answer in round {number}: {error}"
            ) from error
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


def _logged_rounds(log: str) -> Iterator[_LoggedRound]:
    logged = _LoggedRound()
    for line in log.splitlines():
        if logged.add(line):
            yield logged
            logged = _LoggedRound()
    if logged != _LoggedRound():
        raise MeasurementError("the server's log ends within a round")


def _method_of(name: str) -> Method:
    if name not in BY_TYPE:
        raise MeasurementError(f"the server's log names an unknown way of drafting: {name}")
    return BY_TYPE[name]


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise _MisfitError(fault)


def _round(logged: _LoggedRound, tokens: Sequence[int]) -> Round:
    """Return a round that gave the first of `tokens`."""
    begun, ended = len(logged.passes), len(logged.verdicts)
    _require(begun == max(1, ended), f"{begun} passes began and {ended} ended")
    if not ended:
        fault = "a token was decoded without its draft, or after the last"
        _require(logged.method is None and bool(tokens), fault)
        return Round(None, (), (Pass((), 0, tokens[0], restored=False),))
    passes = _passes(logged, tokens)
    read = passes[0].read
    drafted = logged.method is not None and logged.drafted == len(read)
    _require(drafted, f"no method drafted the {len(read)} tokens that it read")
    return Round(logged.method, _guesses(logged, read), passes)


def _guesses(logged: _LoggedRound, read: Sequence[int]) -> tuple[Guess, ...]:
    """Return the drafted tokens, which the first pass read, with their probabilities if logged.

    What is looked up has none, and DFlash's second version logs none. A model that stops where it
    is unsure, or drafts beyond the end, has more candidates.
    """
    method = logged.method
    if not logged.candidates and method and (is_ngram(method) or method == Method.DFLASH):
        return tuple(Guess(token, None) for token in read)
    guesses = logged.candidates[: len(read)]
    same = [guess.token for guess in guesses] == list(read)
    _require(same, "the tokens that it read are not the draft's likeliest")
    return tuple(guesses)


def _passes(logged: _LoggedRound, tokens: Sequence[int]) -> tuple[Pass, ...]:
    """Return the passes over a draft that gave the first of `tokens`."""
    for one, verdict in zip(logged.passes, logged.verdicts, strict=True):
        named = len(one.batch) == 1 + one.width and one.batch[0] == one.after
        _require(named, "it does not name the tokens that a pass read")
        undone_though_accepted = verdict.restored and verdict.accepted == one.width
        _require(
            verdict.drafted == one.width >= verdict.accepted and not undone_though_accepted,
            f"{verdict.accepted} of {verdict.drafted} tokens were accepted, of {one.width} to read",
        )
    last = logged.verdicts[-1].accepted
    _require(last < len(tokens), "it gave more tokens than the answer holds")
    # A replay ends with the token that the target chose in the pass before.
    own = [*(replay.batch[-1] for replay in logged.passes[1:]), tokens[last]]
    passes = tuple(
        Pass(tuple(one.batch[1:]), verdict.accepted, chosen, verdict.restored)
        for one, verdict, chosen in zip(logged.passes, logged.verdicts, own, strict=True)
    )
    _refuse_other_tokens(passes, tokens[:last])
    return passes


def _refuse_other_tokens(passes: Sequence[Pass], accepted: Sequence[int]) -> None:
    """Check that each replay reads what the pass before gave, and that all give the answer."""
    same = passes[-1].read[: len(accepted)] == tuple(accepted)
    _require(same, "the drafted tokens called accepted are not those of the answer")
    for one, replay in pairwise(passes):
        width = len(replay.read)
        _require(
            width == one.accepted + 1, f"a replay read {width} tokens after {one.accepted} accepted"
        )
        same = replay.read[:-1] == one.read[: one.accepted]
        _require(same, "a replay read other tokens than those that were accepted")
    for one in passes:
        rejected = one.own not in one.read[one.accepted : one.accepted + 1]
        _require(rejected, "a drafted token called rejected is the one of the answer")
