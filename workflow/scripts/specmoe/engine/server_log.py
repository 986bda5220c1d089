"""The log lines about speculation that llama-server writes with LLAMA_TRACE=1.

A hybrid target cannot undo part of a verification. When it rejects some drafted tokens, the server
restores the state from before the round and decodes the accepted tokens again, a *replay*. A replay
is a smaller batch than the verification it repeats, so a near tie may fall the other way; the
replay is then rejected in part and replayed once more.

Source of the lines: llama.cpp, tools/server/server-context.cpp, "accepted %2zu/%2zu draft tokens",
and common/speculative.cpp, "dur(b,g,a)", written after every request: the milliseconds, summed
since the server started, of beginning requests, generating drafts, and accepting.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_LINE = re.compile(
    r"\| task (\d+) \| accepted +(\d+)/ *(\d+) draft tokens( \(restore checkpoint\))?"
)

_DURATIONS = re.compile(r"statistics +draft-simple: .*dur\(b,g,a\) = [\d.]+, ([\d.]+), ")


@dataclass(frozen=True)
class Verification:
    """One pass of the target over drafted tokens; a `restored` one was undone and replayed."""

    accepted: int
    drafted: int
    restored: bool


def read_trace(log: str) -> list[list[Verification]]:
    """Return the verifications of each speculative request, in the order of the requests."""
    requests: dict[str, list[Verification]] = {}
    for task, accepted, drafted, restored in _LINE.findall(log):
        requests.setdefault(task, []).append(
            Verification(int(accepted), int(drafted), bool(restored))
        )
    return list(requests.values())


def read_draft_times(log: str) -> list[float]:
    """Return the drafting time of each speculative request in ms, in the order of the requests."""
    since_start = [0.0, *map(float, _DURATIONS.findall(log))]
    return [after - before for before, after in pairwise(since_start)]


def count_replays(verifications: Iterable[Verification]) -> int:
    """Return how many passes repeated an earlier pass."""
    return sum(verification.restored for verification in verifications)


def count_rejected_replays(verifications: Iterable[Verification]) -> int:
    """Return how many replays were rejected in part; these gave no token."""
    return sum(one.restored and next_.restored for one, next_ in pairwise(verifications))
