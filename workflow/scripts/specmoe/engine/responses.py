"""Responses, counters and log of llama-server, checked where they come in.

With LLAMA_TRACE=1 the log has a line for every verification. A hybrid target cannot undo part of a
verification: it is restored and decodes the accepted tokens again, a *replay*. A near tie may be
decided otherwise in this smaller batch; it is replayed again.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import sub
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from specmoe.config.base import resource
from specmoe.config.block import Stop

# The names of counters, see `read_counters`.
DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ROUNDS = "spec_decode_num_drafts_total"
ACCEPTED_AT = "spec_decode_num_accepted_tokens_per_pos_total/{position}"
DECODES = "n_decode_total"


def read_counters(text: str) -> dict[str, float]:
    """Return the counters of `/metrics` by name, without the `llamacpp:` prefix.

    Counters per draft position are named `..._per_pos_total/0`. Raises ValueError if damaged.
    """
    return {
        "/".join([sample.name.removeprefix("llamacpp:"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def tokens_per_second(answer: Mapping[str, Any]) -> float | None:
    """Return the decoding rate of a response; None of one token, which the prompt's pass gives."""
    after_first = len(answer["tokens"]) - 1
    return after_first / answer["timings"]["predicted_ms"] * 1000 if after_first else None


def stopped_by(answer: Mapping[str, Any]) -> Stop:
    """Return why an answer has no further token: the target ended its text, or it was enough."""
    return Stop.EOS if answer.get("stop_type") == "eos" else Stop.LENGTH


# A slot begins with a request; each line of a verification names its slot (llama.cpp,
# tools/server/server-context.cpp, "accepted %2zu/%2zu draft tokens").
_TASK = re.compile(r"\bid +(\d+) \| task \d+ \| processing task")
_VERIFICATION = re.compile(
    r"\bid +(\d+) \| task \d+ \| accepted +(\d+)/ *(\d+) draft tokens( \(restore checkpoint\))?"
)
# common/speculative.cpp, written after every request for each type that drafts: tokens drafted and
# accepted since the server started, and "dur(b,g,a)", the ms of beginning requests, generating
# drafts and accepting.
_STATISTICS = re.compile(
    r"statistics +([\w-]+): (?:.*#gen tokens = +(\d+), #acc tokens = +(\d+))?"
    r".*dur\(b,g,a\) = [\d.]+, ([\d.]+), "
)

# A line of an error, after its time, or of a command line that is refused.
_FIRST_ERROR = re.compile(r"^(?:\d[\d.]* E +|(?=error))(.+)$", re.MULTILINE)


class Verification(NamedTuple):
    """One pass of the target over drafted tokens; a `restored` one was undone and replayed."""

    accepted: int
    drafted: int
    restored: bool


LoggedRequest = dict[str, Any]
"""What a server logs of one request, as a record has it: its `verifications`; and, of no meaning
where requests are served at once, `draft_ms`, the time of drafting, and by `drafted_by` of each
`--spec-type` the tokens that it drafted, and of those the accepted ones as the engine counts them:
with the token that a replay verifies beside the drafted ones."""


def read_requests(log: str) -> dict[int, list[LoggedRequest]]:
    """Return what a server logged of each request, by the slot that served it and in its order."""
    slots: dict[int, list[LoggedRequest]] = {}
    before: dict[str, list[float]] = {}  # by type: tokens drafted and accepted, and ms
    for line in log.splitlines():
        if match := _TASK.search(line):
            begun: LoggedRequest = {"verifications": [], "draft_ms": None, "drafted_by": {}}
            slots.setdefault(int(match[1]), []).append(begun)
        elif match := _STATISTICS.search(line):
            kind, *counts = match.groups()
            now = [float(count or 0) for count in counts]
            *tokens, ms = map(sub, now, before.get(kind, [0.0] * len(now)))
            before[kind] = now
            if 0 in slots:
                request = slots[0][-1]
                request["draft_ms"] = (request["draft_ms"] or 0.0) + ms
                request["drafted_by"][kind] = [*map(int, tokens)]
        elif match := _VERIFICATION.search(line):
            slot, accepted, drafted, restored = match.groups()
            verification = Verification(int(accepted), int(drafted), bool(restored))
            slots[int(slot)][-1]["verifications"].append(verification)
    return slots


def error_in(log: str) -> str | None:
    """Return the first error in a server's log; None without any."""
    match = _FIRST_ERROR.search(log)
    return match[1].strip() if match else None


def reason_not_to_speculate(log: str) -> str | None:
    """Return why a server speculates otherwise than asked, in its words, if it says so."""
    match = re.search(resource("engine_rules")["log"]["other_speculation"], log)
    return match.group().strip() if match else None


def round_counts(verifications: Sequence[Verification], longest: int) -> dict[str, Any]:
    """Return a row's counts of a run's verifications, see `runs.schema.Row`.

    `longest` is the longest draft. Replays that were rejected in part gave no token.
    """
    rounds = [*_rounds(verifications)]
    accepted, drafted = (Counter(of) for of in zip(*rounds, strict=True)) if rounds else ({}, {})
    tried = [min(accepted + 1, drafted) for accepted, drafted in rounds]
    lengths, restored = range(longest + 1), [undone for *_, undone in verifications]
    return {
        "accepted_lengths": [accepted.get(length, 0) for length in lengths],
        "drafted_lengths": [drafted.get(length, 0) for length in lengths],
        "drafted_per_position": [sum(end > at for end in tried) for at in range(longest)],
        "replays": sum(restored),
        "replays_rejected": sum(first and second for first, second in pairwise(restored)),
    }


def given_in_replays(verifications: Sequence[Verification]) -> int:
    """Return how many tokens of the target's own were verified, and accepted, in replays."""
    accepted = sum(one.accepted for one in verifications if not one.restored)
    return accepted - sum(of_round for of_round, _ in _rounds(verifications))


def _rounds(verifications: Iterable[Verification]) -> Iterator[tuple[int, int]]:
    """Yield how many tokens each round accepted, and how many it had drafted.

    A replay drafts none. One that is accepted holds one token that the target gave itself.
    """
    first: Verification | None = None
    for verification in verifications:
        replay, first = first is not None, first or verification
        if not verification.restored:
            yield verification.accepted - (replay and verification.accepted > 0), first.drafted
            first = None
