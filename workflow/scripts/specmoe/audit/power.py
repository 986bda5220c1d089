"""How much the audit finds: rows of a campaign made too fast on purpose, and how many are marked.

A row is planted by dividing its decode time, while its counters, its drafting time and every other
row stay. That is what a decode that silently does nothing looks like.
"""

from dataclasses import replace
from typing import Any

import pandas as pd

from specmoe.audit.checks import CHECKS, Evidence
from specmoe.audit.finding import CheckVerdict, Level, Run

FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # the first is the true rows
_TIMED = ("draft_time", "bandwidth", "baseline_time", "expected_experts")


def count_power(evidence: Evidence) -> pd.DataFrame:
    """Return how many rows with a draft the audit marks by their time, as they are and made faster.

    Columns: factor (how many times too fast), runs, impossible (those that fail a check of the
    first level), implausible (those of the others that fail one of the second).
    """
    timed = [run for run in evidence.runs.values() if run.speculative and run.decode_ms]
    rows = [_count(evidence, timed, factor) for factor in FACTORS]
    return pd.DataFrame(rows, columns=["factor", "runs", "impossible", "implausible"])


def _count(evidence: Evidence, timed: list[Run], factor: float) -> dict[str, Any]:
    failed = [_failed(_faster(run, factor), evidence) for run in timed]
    impossible = sum(Level.IMPOSSIBLE in levels for levels in failed)
    marked = sum(bool(levels) for levels in failed)
    return {
        "factor": factor,
        "runs": len(timed),
        "impossible": impossible,
        "implausible": marked - impossible,
    }


def _faster(run: Run, factor: float) -> Run:
    ms, rate = run.decode_ms, run.tokens_per_second
    return replace(
        run,
        decode_ms=None if ms is None else ms / factor,
        tokens_per_second=None if rate is None else rate * factor,
    )


def _failed(run: Run, evidence: Evidence) -> set[Level]:
    """Return the levels of the checks of time that a run fails."""
    return {
        CHECKS[name].level
        for name in _TIMED
        if CHECKS[name].find(run, evidence).verdict == CheckVerdict.FAIL
    }
