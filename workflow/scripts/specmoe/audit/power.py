"""How much the audit finds: rows of a campaign made too fast on purpose, and how many are marked.

What a decode that silently does nothing leaves is a shorter time. Whoever writes a row by hand can
also shorten the time of its drafting, and can give it the counters of a draft that holds more
often. Every other row stays, and so do the times of models alone.
"""

from collections.abc import Iterable
from enum import StrEnum
from itertools import product
from math import ceil
from typing import Any

import pandas as pd

from specmoe.audit.checks import CHECKS
from specmoe.audit.evidence import Evidence
from specmoe.audit.finding import CheckVerdict, Level, Run

FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # the first is the true rows
_OF_TIME = [check for check in CHECKS.values() if check.of_time]
_BOUNDS = [check for check in _OF_TIME if check.level == Level.IMPOSSIBLE]
_OF_SINGLE_ROUNDS = (
    *("accepted_per_position", "accepted_lengths", "drafted_lengths"),
    *("replays", "replays_rejected", "decodes"),
)
# These look at no time, but find counters that do not add up, or that are not the draft's.
_LOOKED_AT = [CHECKS["accounting"], CHECKS["agreement"], *_OF_TIME]


class Forged(StrEnum):
    """What of a row is made too fast."""

    DECODING = "decode time"
    DRAFTING = "with drafting"  # the logged time of drafting too
    COUNTERS = "with counters"  # and as many fewer rounds, so that more seems accepted


def count_power(evidence: Evidence) -> pd.DataFrame:
    """Return how many rows with a draft the audit marks, as they are and made faster.

    Columns: forged (`Forged`), factor (how many times too fast), runs, unbounded (those to which no
    bound of time applies), impossible (those that fail a check of the first level), implausible
    (those of the others that fail one of the second).
    """
    timed = [run for run in evidence.runs.values() if run.speculative and run.decode_ms]
    unbounded = sum(
        all(check.find(run, evidence).ratio is None for check in _BOUNDS) for run in timed
    )
    as_they_are = _marked(timed, evidence)
    rows = []
    for forged, factor in product(Forged, FACTORS):
        row = {"forged": forged.value, "factor": factor, "runs": len(timed), "unbounded": unbounded}
        faster = (_faster(run, forged, factor) for run in timed)
        rows.append(row | (as_they_are if factor == 1 else _marked(faster, evidence)))
    return pd.DataFrame(rows)


def _marked(runs: Iterable[Run], evidence: Evidence) -> dict[str, Any]:
    failed = [
        {
            check.level
            for check in _LOOKED_AT
            if check.find(run, evidence).verdict == CheckVerdict.FAIL
        }
        for run in runs
    ]
    impossible = sum(Level.IMPOSSIBLE in levels for levels in failed)
    return {"impossible": impossible, "implausible": sum(map(bool, failed)) - impossible}


def _faster(run: Run, forged: Forged, factor: float) -> Run:
    """Make a run faster; it has fewer rounds as far as drafts of its length can be accepted.

    Counters that say more of single rounds are left out, as a log need not have them.
    """
    ms, rate = run.decode_ms, run.tokens_per_second
    faster = run.changed(decode_ms=ms and ms / factor, tokens_per_second=rate and rate * factor)
    if forged != Forged.DECODING:
        faster = faster.changed(draft_ms=run.draft_ms and run.draft_ms / factor)
    if forged != Forged.COUNTERS:
        return faster
    if run.rounds is None or run.accepted is None or run.drafted is None:
        return faster
    undone = (run.replays or 0) - (run.replays_rejected or 0)
    tokens = run.rounds + run.accepted + undone
    rounds = max(ceil(run.rounds / factor), ceil(tokens / (1 + run.gamma)))
    accepted = tokens - rounds
    drafted = max(accepted, min(run.drafted, rounds * run.gamma))
    counts: dict[str, Any] = dict.fromkeys(_OF_SINGLE_ROUNDS)
    return faster.changed(**counts, rounds=rounds, accepted=accepted, drafted=drafted)
