"""The log lines about speculation that llama-server writes with LLAMA_TRACE=1.

A hybrid target cannot undo part of a verification: it is restored and decodes the accepted tokens
again, a *replay*. A near tie may fall the other way in this smaller batch; it is replayed again.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

# llama.cpp, tools/server/server-context.cpp, "accepted %2zu/%2zu draft tokens".
_LINE = re.compile(r"\| accepted +(\d+)/ *(\d+) draft tokens( \(restore checkpoint\))?")
# common/speculative.cpp, written after every request: "dur(b,g,a)" has the ms of beginning
# requests, generating drafts and accepting, since the server started.
_STATISTICS = re.compile(r"statistics +[\w-]+: .*dur\(b,g,a\) = [\d.]+, ([\d.]+), ")

# A slot begins with a request; each line of a verification names its slot.
_TASK = re.compile(r"\bid +(\d+) \| task \d+ \| processing task")
_SLOT = re.compile(r"\bid +(\d+) \| task ")

# A line of an error, after its time, or of a command line that is refused.
_FIRST_ERROR = re.compile(r"^(?:\d[\d.]* E +|(?=error))(.+)$", re.MULTILINE)
# Why a server speculates otherwise than asked; only its log says so.
_REASONS = re.compile(
    r"the target and draft vocabs are not compatible"
    r"|failed to initialize speculative decoding context: .*"
    r"|speculative decoding not supported by this context"
    r"|exceeds the trained block size \d+"
    r"|context type MTP requested but model doesn't contain MTP layers"
)


class Verification(NamedTuple):
    """One pass of the target over drafted tokens; a `restored` one was undone and replayed."""

    accepted: int
    drafted: int
    restored: bool


@dataclass(frozen=True)
class Request:
    """What a server logs of one request: its verifications, and the ms of drafting."""

    verifications: list[Verification] = field(default_factory=list)
    draft_ms: float | None = None  # None: the log has it for all requests at once


def read_requests(log: str) -> list[Request]:
    """Return what a speculating server logged of each request, in order."""
    requests, verifications, before = [], [], 0.0
    for line in log.splitlines():
        if verification := read_verification(line):
            verifications.append(verification)
        elif found := _STATISTICS.search(line):
            requests.append(Request(verifications, float(found[1]) - before))
            verifications, before = [], float(found[1])
    return requests


def read_slots(log: str) -> dict[int, list[Request]]:
    """Return what a server logged of each request, by the slot that served it and in its order.

    Requests that are served at once have their verifications alone: the time of drafting is that of
    the whole server.
    """
    slots: dict[int, list[Request]] = {}
    for line in log.splitlines():
        if found := _TASK.search(line):
            slots.setdefault(int(found[1]), []).append(Request())
        elif verification := read_verification(line):
            found = _SLOT.search(line)
            assert found is not None
            slots[int(found[1])][-1].verifications.append(verification)
    return slots


def read_verification(line: str) -> Verification | None:
    """Return the verification that a line of the log reports; None if it reports none."""
    found = _LINE.search(line)
    if found is None:
        return None
    accepted, drafted, restored = found.groups()
    return Verification(int(accepted), int(drafted), bool(restored))


def first_error(log: str) -> str | None:
    """Return the first error that a server logged, in its words; None without any.

    Of a command line that it refuses, the server says that before it logs.
    """
    found = _FIRST_ERROR.search(log)
    return found[1].strip() if found else None


def reason_not_to_speculate(log: str) -> str | None:
    """Return why a server speculates otherwise than asked, in its words, if it says so."""
    found = _REASONS.search(log)
    return found.group().strip() if found else None


def accepted_lengths(verifications: Iterable[Verification], longest: int) -> list[int]:
    """Return how many rounds had 0, 1, ... `longest` tokens accepted."""
    lengths = Counter(accepted for _, accepted in _rounds(verifications))
    return [lengths[length] for length in range(longest + 1)]


def drafted_lengths(verifications: Iterable[Verification], longest: int) -> list[int]:
    """Return how many rounds had 0, 1, ... `longest` tokens drafted."""
    lengths = Counter(drafted for drafted, _ in _rounds(verifications))
    return [lengths[length] for length in range(longest + 1)]


def tried_per_position(verifications: Iterable[Verification], longest: int) -> list[int]:
    """Return how many rounds drafted a token at each position and accepted all before it."""
    tried = Counter(min(accepted + 1, drafted) for drafted, accepted in _rounds(verifications))
    return [sum(tried[end] for end in tried if end > position) for position in range(longest)]


def _rounds(verifications: Iterable[Verification]) -> Iterator[tuple[int, int]]:
    """Yield how many tokens each round drafted, and how many of them it accepted.

    A replay drafts none. One that is accepted holds one token that the target gave itself.
    """
    first: Verification | None = None
    for one in verifications:
        replay, first = first is not None, first or one
        if not one.restored:
            yield first.drafted, one.accepted - (replay and one.accepted > 0)
            first = None


def count_replays(verifications: Iterable[Verification]) -> int:
    """Return how many passes repeated an earlier pass."""
    return sum(verification.restored for verification in verifications)


def count_rejected_replays(verifications: Iterable[Verification]) -> int:
    """Return how many replays were rejected in part; these gave no token."""
    return sum(one.restored and next_.restored for one, next_ in pairwise(verifications))
