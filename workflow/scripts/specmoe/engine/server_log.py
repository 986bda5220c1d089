"""The log lines about speculation that llama-server writes with LLAMA_TRACE=1.

A hybrid target cannot undo part of a verification. When it rejects some drafted tokens, the server
restores the state from before the round and decodes the accepted tokens again, a *replay*. A replay
is a smaller batch than the verification it repeats, so a near tie may fall the other way; the
replay is then rejected in part and replayed once more.

Source of the lines: llama.cpp, tools/server/server-context.cpp, "accepted %2zu/%2zu draft tokens",
and common/speculative.cpp, "statistics", written after every request by each type of `--spec-type`:
counts summed since the server started, and as "dur(b,g,a)" the milliseconds of beginning requests,
generating drafts, and accepting.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from itertools import pairwise

_LINE = re.compile(r"\| accepted +(\d+)/ *(\d+) draft tokens( \(restore checkpoint\))?")
_STATISTICS = re.compile(
    r"statistics +([\w-]+): .*#gen drafts = +(\d+), .*#gen tokens = +(\d+), #acc tokens = +(\d+)"
    r".*dur\(b,g,a\) = [\d.]+, ([\d.]+), "
)

# The lines of a slot: which one it is, and that it begins with a request ("processing task").
_SLOT = re.compile(r"\bid +(\d+) \| task ")
_TASK = re.compile(r"\bid +(\d+) \| task \d+ \| processing task")

# A line of an error, after its time, or of a command line that is refused.
_FIRST_ERROR = re.compile(r"^(?:\d[\d.]* E +|(?=error))(.+)$", re.MULTILINE)
# Why a server speculates otherwise than it was told; it says so in its log alone.
_REASONS = re.compile(
    r"failed to initialize speculative decoding context: .*"
    r"|speculative decoding not supported by this context"
    r"|exceeds the trained block size \d+"
    r"|context type MTP requested but model doesn't contain MTP layers"
)


@dataclass(frozen=True)
class Verification:
    """One pass of the target over drafted tokens; a `restored` one was undone and replayed."""

    accepted: int
    drafted: int
    restored: bool


@dataclass(frozen=True)
class TypeCounts:
    """What one type of drafting did in a request."""

    type: str  # as `--spec-type` has it
    drafts: int  # rounds in which it drafted
    drafted: int
    accepted: int  # with one too many for each replay that gave a token
    draft_ms: float


@dataclass(frozen=True)
class Request:
    """What a server logs of one request: its verifications, and the counts of each type."""

    verifications: list[Verification] = field(default_factory=list)
    counts: list[TypeCounts] = field(default_factory=list)


def read_requests(log: str) -> list[Request]:
    """Return what the log of a server that speculates says of each request, in order."""
    since_start: dict[str, TypeCounts] = {}
    requests = [Request()]
    for line in log.splitlines():
        if verification := read_verification(line):
            if requests[-1].counts:
                requests.append(Request())
            requests[-1].verifications.append(verification)
        elif found := _STATISTICS.search(line):
            kind, drafts, drafted, accepted, ms = found.groups()
            now = TypeCounts(kind, int(drafts), int(drafted), int(accepted), float(ms))
            if kind in {one.type for one in requests[-1].counts}:
                requests.append(Request())
            requests[-1].counts.append(_since(since_start.get(kind), now))
            since_start[kind] = now
    return requests if requests[-1].counts else requests[:-1]


def read_slots(log: str) -> dict[int, list[Request]]:
    """Return what the log says of each request, by the slot that served it and in its order.

    Requests that are served at once have their verifications alone: the counts of types are those
    of the whole server.
    """
    slots: dict[int, list[Request]] = {}
    for line in log.splitlines():
        if found := _TASK.search(line):
            slots.setdefault(int(found[1]), []).append(Request())
        elif verification := read_verification(line):
            slots[_slot_of(line)][-1].verifications.append(verification)
    return slots


def _slot_of(line: str) -> int:
    found = _SLOT.search(line)
    assert found is not None  # each line of a verification names its slot
    return int(found[1])


def read_verification(line: str) -> Verification | None:
    """Return the verification that a line of the log tells of, None if it tells of none."""
    found = _LINE.search(line)
    if found is None:
        return None
    accepted, drafted, restored = found.groups()
    return Verification(int(accepted), int(drafted), bool(restored))


def _since(before: TypeCounts | None, now: TypeCounts) -> TypeCounts:
    if before is None:
        return now
    (_, *earlier), (_, *later) = astuple(before), astuple(now)
    return TypeCounts(now.type, *(end - start for start, end in zip(earlier, later, strict=True)))


def first_error(log: str) -> str | None:
    """Return the first error that a server logged, in its words; None without any.

    Of a command line that it refuses, the server says that before it logs.
    """
    found = _FIRST_ERROR.search(log)
    return found[1].strip() if found else None


def reason_not_to_speculate(log: str) -> str | None:
    """Return why a server speculates otherwise than it was told, in its words; None if not said."""
    found = _REASONS.search(log)
    return found.group().strip() if found else None


def accepted_lengths(verifications: Iterable[Verification], longest: int) -> list[int]:
    """Return how many rounds had 0, 1, ... `longest` tokens accepted.

    A replay that is accepted holds one token that the target gave itself.
    """
    lengths: Counter[int] = Counter()
    replay = False
    for one in verifications:
        if not one.restored:
            lengths[one.accepted - (replay and one.accepted > 0)] += 1
        replay = one.restored
    return [lengths[length] for length in range(longest + 1)]


def tried_per_position(verifications: Iterable[Verification], longest: int) -> list[int]:
    """Return how many rounds drafted a token at each position and accepted all before it."""
    tried = [0] * longest
    drafted, replay = 0, False
    for one in verifications:
        drafted = drafted if replay else one.drafted
        if not one.restored:
            accepted = one.accepted - (replay and one.accepted > 0)
            for position in range(min(accepted + 1, drafted, longest)):
                tried[position] += 1
        replay = one.restored
    return tried


def drafted_lengths(verifications: Iterable[Verification], longest: int) -> list[int]:
    """Return how many rounds had 0, 1, ... `longest` tokens drafted; a replay drafts none."""
    lengths: Counter[int] = Counter()
    replay = False
    for one in verifications:
        if not replay:
            lengths[one.drafted] += 1
        replay = one.restored
    return [lengths[length] for length in range(longest + 1)]


def count_replays(verifications: Iterable[Verification]) -> int:
    """Return how many passes repeated an earlier pass."""
    return sum(verification.restored for verification in verifications)


def count_rejected_replays(verifications: Iterable[Verification]) -> int:
    """Return how many replays were rejected in part; these gave no token."""
    return sum(one.restored and next_.restored for one, next_ in pairwise(verifications))
