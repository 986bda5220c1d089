"""The audit as a page of plain text."""

from math import isfinite
from textwrap import wrap

import pandas as pd

from specmoe.audit.checks import CHECKS
from specmoe.audit.finding import CheckVerdict
from specmoe.config.block import NO_DRAFT

WIDTH, INDENT = 100, 24
NAMED = 3


def describe_audit(audit: pd.DataFrame, runs: pd.DataFrame) -> str:
    """Return the checks, how many rows break each one, and the names of the worst rows.

    `audit` is the frame of `audit_runs` for `runs`.
    """
    parts = [_head(audit, runs), ""]
    for name, check in CHECKS.items():
        members = audit[audit["check"] == name]
        ties = _ties(members) if name == "losslessness" else ""
        line = f"{check.words + ':':<{INDENT}}{_outcome(members)}{ties}"
        parts += [*wrap(line, WIDTH, subsequent_indent=" " * INDENT), *_worst(members)]
    return "\n".join(parts) + "\n"


def _head(audit: pd.DataFrame, runs: pd.DataFrame) -> str:
    campaigns = ", ".join(runs["campaign"].unique())
    drafted = int((runs["draft"] != NO_DRAFT).sum())
    marked = audit.loc[audit["verdict"] == CheckVerdict.FAIL, "run"].nunique()
    recovered = audit.loc[audit["recovered"], "run"].nunique()
    lines = [
        f"Audit of campaign {campaigns}: {len(runs)} rows, {drafted} of them with a draft",
        f"{marked} rows break a bound" if marked else "No row breaks a bound",
    ]
    if recovered:
        lines.append(f"{recovered} rows have values recovered by arithmetic")
    lines.append(_controls(audit[audit["check"] == "controls"]))
    return "\n".join(lines)


def _controls(members: pd.DataFrame) -> str:
    failed = int((members["verdict"] == CheckVerdict.FAIL).sum())
    passed = int((members["verdict"] == CheckVerdict.PASS).sum())
    if not failed + passed:
        return "Controls: not measured; no pair of models has a known outcome"
    if failed:
        return f"Controls: FAILED, {failed} of {failed + passed} rows; do not trust the others"
    return f"Controls: passed, {passed} rows"


def _outcome(members: pd.DataFrame) -> str:
    failed = int((members["verdict"] == CheckVerdict.FAIL).sum())
    applicable = int((members["verdict"] != CheckVerdict.NOT_APPLICABLE).sum())
    if not applicable:
        reasons = members["why"].value_counts()
        most = ", for most rows" if len(reasons) > 1 else ""
        return f"not applicable{most}: {reasons.index[0]}"
    rest = f"; {len(members) - applicable} not applicable" if applicable < len(members) else ""
    worst = members["ratio"].max()
    if failed:
        over = f", the worst by a factor of {worst:.1f}" if isfinite(worst) else ""
        return f"{failed} of {applicable} rows break it{over}{rest}"
    # A check of equality has no distance to its bound; a value of zero has none either.
    nearest = f", the nearest at {worst:.2f} of the bound" if 0 < worst < 1 else ""
    return f"{applicable} of {applicable} rows pass{nearest}{rest}"


def _ties(members: pd.DataFrame) -> str:
    # Identical runs have no gap to measure.
    ties = int(((members["verdict"] == CheckVerdict.PASS) & members["measured"].notna()).sum())
    return f"; {ties} diverge at a near tie" if ties else ""


def _worst(members: pd.DataFrame) -> list[str]:
    failed = members[members["verdict"] == CheckVerdict.FAIL]
    worst = failed.sort_values("ratio", ascending=False, kind="stable").head(NAMED)
    lines = []
    for run, why in worst[["run", "why"]].itertuples(index=False):
        lines += wrap(f"{run}: {why}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines
