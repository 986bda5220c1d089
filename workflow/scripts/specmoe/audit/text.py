"""The audit as a page of plain text."""

from collections.abc import Sequence
from math import isfinite
from textwrap import wrap

import pandas as pd

from specmoe.audit.checks import CHECKS, marked_runs
from specmoe.audit.finding import CheckVerdict, Level
from specmoe.config.block import NO_DRAFT, Block

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
    parts = [_head(audit, runs, left_out), ""]
    for level in Level:
        parts += [f"{level.capitalize()} if it fails:", *_checks(audit, level), ""]
    return "\n".join([*parts, *_power(power)]) + "\n"


def _checks(audit: pd.DataFrame, level: Level) -> list[str]:
    lines = []
    for name, check in CHECKS.items():
        if check.level == level:
            members = audit[audit["check"] == name]
            ties = _ties(members) if name == "losslessness" else ""
            line = f"{check.words + ':':<{INDENT}}{_outcome(members)}{ties}"
            lines += [*wrap(line, WIDTH, subsequent_indent=" " * INDENT), *_worst(members)]
    return lines


def _head(audit: pd.DataFrame, runs: pd.DataFrame, left_out: Sequence[Block]) -> str:
    campaigns = ", ".join(runs["campaign"].unique())
    drafted = int((runs["draft"] != NO_DRAFT).sum())
    marked, impossible = marked_runs(audit), marked_runs(audit, Level.IMPOSSIBLE)
    recovered = audit.loc[audit["recovered"], "run"].nunique()
    lines = [
        f"Audit of campaign {campaigns}: {len(runs)} rows, {drafted} of them with a draft",
        f"{_rows(len(impossible))} impossible, {_rows(len(marked - impossible))} implausible",
    ]
    if left_out:
        named = ", ".join(block.block for block in left_out)
        count = sum(block.runs for block in left_out)
        lines.append(f"{count} rows are not there, left out on purpose: {named}")
    if recovered:
        lines.append(f"{recovered} rows have values recovered by arithmetic")
    lines.append(_controls(audit[audit["check"] == "controls"]))
    return "\n".join(lines)


def _rows(count: int) -> str:
    return "no row is" if not count else "1 row is" if count == 1 else f"{count} rows are"


def _power(power: pd.DataFrame) -> list[str]:
    """Return what the checks of time would find in these rows, had they been too fast."""
    runs = int(power["runs"].max())
    if not runs:
        return []
    lines = [f"Had the {runs} rows with a draft been too fast, their time alone would have made:"]
    for row in power[power["factor"] > 1].to_dict("records"):
        impossible, implausible = row["impossible"] / runs, row["implausible"] / runs
        times = f"{row['factor']:g} times:"
        lines.append(f"  {times:<10}{impossible:4.0%} impossible, {implausible:.0%} implausible")
    return lines


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
        return f"{failed} of {applicable} rows fail it{over}{rest}"
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
