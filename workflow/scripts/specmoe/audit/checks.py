"""The audit: whether a row can be a measurement of what it says it measures.

Every run is checked at two levels. Bounds that no true run breaks tell what is impossible;
expectations tell what is implausible. A row that fails a check is marked and named, never dropped.
The reader decides what to make of it.
"""

from typing import Any

import pandas as pd

from specmoe.audit import accounting, agreement, bounds, output
from specmoe.audit.evidence import Check, Evidence
from specmoe.audit.finding import CheckVerdict, Level, Run
from specmoe.config.block import MEASURED_BY

ALL = "all"
"""The target and draft in the row that counts the whole campaign."""

_CELL = [*MEASURED_BY, "target", "draft", "gamma"]
_COUNTED = {
    CheckVerdict.PASS: "passed",
    CheckVerdict.FAIL: "failed",
    CheckVerdict.NOT_APPLICABLE: "not_applicable",
    CheckVerdict.NOT_JUDGED: "not_judged",
}
_IDENTITY = ["run", *MEASURED_BY, "suite", "target", "draft", "gamma", "prompt", "repeat"]

CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): one
    for module in (accounting, agreement, bounds, output)
    for name, one in vars(module).items()
    if isinstance(one, Check)
}


def audit_runs(evidence: Evidence) -> pd.DataFrame:
    """Return one row per run and check, in their orders.

    Columns: run, protocol, engine, suite, target, draft, gamma, prompt, repeat, check (a key of
    CHECKS), level (of the check), verdict (of CheckVerdict), bound, measured,
    ratio (how many times over the bound: above 1 breaks it, infinite if the bound is zero, null if
    not applicable), recovered (whether it rests on values recovered by arithmetic), why (a sentence
    with the numbers).
    """
    rows = [
        _row(run, name, check, evidence)
        for run in evidence.runs.values()
        for name, check in CHECKS.items()
    ]
    return pd.DataFrame(rows).astype({"bound": float, "measured": float, "ratio": float})


def summarise_audit(audit: pd.DataFrame) -> pd.DataFrame:
    """Return one row per way, target, draft and gamma, sorted, and a last one for all of them.

    Columns: protocol, engine, target, draft (all `all` in the last row), gamma (null there), runs,
    marked (runs that fail some check), impossible and implausible (those of them that fail a check
    of the first level, and the others), and for each check `<check>_passed`, `<check>_failed`,
    `<check>_not_applicable`, `<check>_not_judged` (numbers of runs) and `<check>_worst` (the
    largest ratio; null if it applies to no run).
    """
    cells = [
        dict(zip(_CELL, cell, strict=True)) | _counts(members)
        for cell, members in audit.groupby(_CELL)
    ]
    whole = dict.fromkeys(_CELL, ALL) | {"gamma": None} | _counts(audit)
    return pd.DataFrame([*cells, whole]).astype({"gamma": "Int64"})


def marked_runs(audit: pd.DataFrame, level: Level | None = None) -> set[str]:
    """Return the runs of `audit_runs`'s frame that fail a check, of one level if one is given."""
    failed = audit["verdict"] == CheckVerdict.FAIL
    if level is not None:
        failed &= audit["level"] == level
    return set(audit.loc[failed, "run"])


def count_marked(audit: pd.DataFrame) -> pd.DataFrame:
    """Return one row per way, suite, target, draft, gamma and prompt, sorted.

    Columns: those, runs, marked (runs that fail some check), impossible (those of them that fail a
    check that no true run can fail).
    """
    failed = audit["run"].where(audit["verdict"] == CheckVerdict.FAIL)
    keys = [*MEASURED_BY, "suite", "target", "draft", "gamma", "prompt"]
    broken = failed.where(audit["level"] == Level.IMPOSSIBLE)
    cells = audit.assign(failed=failed, broken=broken).groupby(keys)
    counts = {"runs": "run", "marked": "failed", "impossible": "broken"}
    return cells.agg(**{name: (of, "nunique") for name, of in counts.items()}).reset_index()


def _row(run: Run, name: str, check: Check, evidence: Evidence) -> dict[str, Any]:
    finding = check.find(run, evidence)
    return {
        **{column: getattr(run, column) for column in _IDENTITY},
        "check": name,
        "level": check.level.value,
        "verdict": finding.verdict.value,
        "bound": finding.bound,
        "measured": finding.measured,
        "ratio": finding.ratio,
        "recovered": not check.columns.isdisjoint(run.recovered),
        "why": finding.why,
    }


def _counts(audit: pd.DataFrame) -> dict[str, Any]:
    marked, impossible = marked_runs(audit), marked_runs(audit, Level.IMPOSSIBLE)
    counts: dict[str, Any] = {
        "runs": audit["run"].nunique(),
        "marked": len(marked),
        "impossible": len(impossible),
        "implausible": len(marked - impossible),
    }
    for name in CHECKS:
        members = audit[audit["check"] == name]
        for verdict, word in _COUNTED.items():
            counts[f"{name}_{word}"] = int((members["verdict"] == verdict).sum())
        counts[f"{name}_worst"] = members["ratio"].max()
    return counts
