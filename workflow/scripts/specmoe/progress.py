"""What a campaign still lacks, said when the workflow ends before its time."""

from collections.abc import Iterable
from pathlib import Path

NAMED = 5


def describe_missing(blocks: Iterable[str], records: Path, logs: Path) -> str:
    """Say which blocks failed and how many were not reached; empty if all are measured.

    `records` holds `<block>.json` of what is measured, `logs` `<block>.log` of what was tried.
    """
    blocks = list(blocks)
    missing = [block for block in blocks if not (records / f"{block}.json").exists()]
    failed = [block for block in missing if (logs / f"{block}.log").exists()]
    if not missing:
        return ""
    lines = [
        f"{len(missing)} of {len(blocks)} blocks are not measured, and what needs them is not made:"
        f" {len(failed)} failed or were interrupted, {len(missing) - len(failed)} were not started."
    ]
    lines += [f"  {block}: see {logs / block}.log" for block in failed[:NAMED]]
    if len(failed) > NAMED:
        lines.append(f"  and {len(failed) - NAMED} more")
    lines.append("What is measured is kept; the same command with --rerun-incomplete goes on.")
    return "\n".join(lines)
