"""The audit as a page of plain text."""

from collections.abc import Sequence
from math import isfinite
from textwrap import wrap

import pandas as pd

from specmoe.audit.checks import CHECKS, summarise_audit
from specmoe.audit.finding import CheckVerdict, Level
from specmoe.config.block import NO_DRAFT, Block
from specmoe.runs.schema import DISTURBED, excluded
from specmoe.words import counted, verb

WIDTH, INDENT = 100, 24
NAMED = 3


def describe_audit(
    audit: pd.DataFrame,
    runs: pd.DataFrame,
    power: pd.DataFrame,
    left_out: Sequence[Block] = (),
) -> str:
    """Return the checks, how many rows fail each one, the worst rows, and the audit's power.

    `audit` is the frame of `audit_runs` for `runs`, `power` that of `count_power`, `left_out` are
    the blocks that were not measured on purpose.
    """
    whole = summarise_audit(audit).iloc[-1]
    parts = [*_head(audit, whole, runs, left_out), ""]
    for level in Level:
        parts += [f"{level.capitalize()} if it fails:", *_checks(audit, whole, level), ""]
    return "\n".join([*parts, *_power(power)]) + "\n"


def _head(
    audit: pd.DataFrame, whole: pd.Series, runs: pd.DataFrame, left_out: Sequence[Block]
) -> list[str]:
    campaigns, drafted = ", ".join(runs["campaign"].unique()), (runs["draft"] != NO_DRAFT).sum()
    lines = [f"Audit of campaign {campaigns}: {counted(len(runs), 'row')}, {drafted} with a draft"]
    found = [(level, whole[level]) for level in Level]
    lines += [
        ", ".join(
            f"{counted(count, 'row') if count else 'no row'} {verb(max(count, 1))} {level}"
            for level, count in found
        )
    ]
    if left_out:
        count, named = sum(one.runs for one in left_out), ", ".join(one.block for one in left_out)
        lines.append(
            f"{counted(count, 'row')} {verb(count)} not there, left out on purpose: {named}"
        )
    if disturbed := runs.loc[runs["taken_away"].notna(), "run"].tolist():
        named = ", ".join(disturbed[:NAMED]) + (", ..." if len(disturbed) > NAMED else "")
        line = (
            f"{len(excluded(runs))} rows are in no estimate: {DISTURBED} at every attempt during"
            f" {len(disturbed)} of them ({named}), the others are compared with these"
        )
        lines += wrap(line, WIDTH, subsequent_indent="  ")
    if recovered := audit.loc[audit["recovered"], "run"].nunique():
        lines.append(f"{counted(recovered, 'row')} with values recovered by arithmetic")
    failed, passed = whole["controls_failed"], whole["controls_passed"]
    rows = counted(failed + passed, "row")
    if failed:
        lines.append(f"Controls: FAILED, {failed} of {rows}; do not trust the others")
    elif passed:
        lines.append(f"Controls: passed, {rows}")
    return lines


def _checks(audit: pd.DataFrame, whole: pd.Series, level: Level) -> list[str]:
    lines = []
    for name, check in CHECKS.items():
        if check.level != level:
            continue
        members = audit[audit["check"] == name]
        outcome = _outcome(members, *(whole[f"{name}_{key}"] for key in ("passed", "failed")))
        # Identical runs have no gap to measure.
        ties = (members["verdict"] == CheckVerdict.PASS) & members["measured"].notna()
        if name == "losslessness" and ties.any():
            outcome += f"; {ties.sum()} diverge at a near tie"
        line = f"{check.words + ':':<{INDENT}}{outcome}"
        lines += wrap(line, WIDTH, subsequent_indent=" " * INDENT)
        failed = members[members["verdict"] == CheckVerdict.FAIL]
        worst = failed.sort_values("ratio", ascending=False, kind="stable").head(NAMED)
        unjudged = members[members["verdict"] == CheckVerdict.NOT_JUDGED].head(NAMED)
        named = pd.concat([worst, unjudged])
        for run, why in named[["run", "why"]].itertuples(index=False):
            lines += wrap(f"{run}: {why}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


def _outcome(members: pd.DataFrame, passed: int, failed: int) -> str:
    unjudged = int((members["verdict"] == CheckVerdict.NOT_JUDGED).sum())
    applicable = passed + failed + unjudged
    if not applicable:
        reasons = members["why"].value_counts()
        most = ", for most rows" if len(reasons) > 1 else ""
        return f"not applicable{most}: {reasons.index[0]}"
    rest = f"; {unjudged} NOT JUDGED" if unjudged else ""
    rest += f"; {len(members) - applicable} not applicable" if applicable < len(members) else ""
    worst, rows = members["ratio"].max(), counted(applicable, "row")
    if failed:
        over = f", the worst by a factor of {worst:.1f}" if isfinite(worst) else ""
        return f"{failed} of {rows} {verb(failed, 'fails', 'fail')} it{over}{rest}"
    # A check of equality has no distance to its bound; a value of zero has none either.
    nearest = f", the nearest at {worst:.2f} of the bound" if 0 < worst < 1 else ""
    return f"{passed} of {rows} {verb(passed, 'passes', 'pass')}{nearest}{rest}"


def _power(power: pd.DataFrame) -> list[str]:
    """Return what the audit would find in these rows, had they been too fast."""
    runs = int(power["runs"].max())
    if not runs:
        return []
    unbounded = int(power["unbounded"].max())
    factors = power.loc[power["factor"] > 1, "factor"].unique()
    lines = [
        f"No bound of time applies to {unbounded} of {counted(runs, 'row')} with a draft.",
        "Had these rows been made too fast, the audit would have found them impossible (and marked"
        " in all):",
        " " * 16 + "".join(f"{factor:g} times".ljust(14) for factor in factors),
    ]
    for forged, rows in power[power["factor"] > 1].groupby("forged", sort=False):
        marked = rows["impossible"] + rows["implausible"]
        found = zip(rows["impossible"] / runs, marked / runs, strict=True)
        shares = [f"{impossible:.0%} ({whole:.0%})" for impossible, whole in found]
        lines.append(f"  {forged:<14}" + "".join(share.ljust(14) for share in shares).rstrip())
    return lines
