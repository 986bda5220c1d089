"""How far a campaign is: what is measured, what is left, and how long that may take."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from specmoe.config.block import Block

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


def seconds_of(record: Mapping[str, Any]) -> float:
    """Return how long a block was measured, from its record."""
    if "elapsed_s" in record:
        return float(record["elapsed_s"])
    # Records of older releases have the parts; protocol `published` had no start and no warm-up.
    runs = sum(run["wall_ms"] for run in record["runs"]) / 1000
    return float(record.get("start_s", 0) + record.get("warm_up_s", 0) + runs)


def measured_seconds(blocks: Iterable[str], records: Path) -> dict[str, float]:
    """Return how long each measured block took, by its id; `records` holds `<block>.json`."""
    files = {block: records / f"{block}.json" for block in blocks}
    return {
        block: seconds_of(json.loads(file.read_text(encoding="utf-8")))
        for block, file in files.items()
        if file.exists()
    }


def pace(estimated: Mapping[str, float | None], measured: Mapping[str, float]) -> float:
    """Return how many times its estimate a block has taken so far; 1 if none is measured."""
    expected = {block: estimated.get(block) for block in measured}
    known = {block: seconds for block, seconds in expected.items() if seconds is not None}
    total = sum(known.values())
    return sum(measured[block] for block in known) / total if total else 1.0


def seconds_left(
    estimated: Mapping[str, float | None], measured: Mapping[str, float]
) -> float | None:
    """Return how long the blocks that are not measured may take, at the pace so far.

    `estimated` has every block of the campaign. Without an estimate a block takes as long as the
    mean of the measured ones; None if there are neither.
    """
    missing = [seconds for block, seconds in estimated.items() if block not in measured]
    guess = sum(measured.values()) / len(measured) if measured else None
    rate = pace(estimated, measured)
    left = 0.0
    for seconds in missing:
        expected = guess if seconds is None else seconds * rate
        if expected is None:
            return None
        left += expected
    return left


def duration(seconds: float | None) -> str:
    """Return a time in words."""
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def changed_blocks(blocks: Iterable[Block], records: Path) -> dict[str, str]:
    """Return the measured blocks that the configuration now asks otherwise, and what is changed."""
    reasons = {}
    for block in blocks:
        file = records / f"{block.block}.json"
        if file.exists():
            recorded = json.loads(file.read_text(encoding="utf-8"))["block"]
            reason = _change(recorded, json.loads(block.to_json()))
            if reason:
                reasons[block.block] = reason
    return reasons


def _change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how a block as recorded differs from what is asked now; empty if it does not."""
    parts = []
    for key, value in now.items():
        # A key that an older release did not know has not changed.
        if before.get(key, value) == value:
            continue
        if key == "prompts":
            parts += _change_of_prompts(before[key], value)
        else:
            parts.append(f"{key}: {before[key]} before, {value} now")
    return ", ".join(parts)


def _change_of_prompts(
    before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
) -> list[str]:
    old, new = ({prompt["prompt"]: prompt for prompt in prompts} for prompts in (before, now))
    added = [f"prompt added: {name}" for name in new if name not in old]
    left = [f"prompt left out: {name}" for name in old if name not in new]
    other = [f"prompt changed: {name}" for name in new if name in old and old[name] != new[name]]
    return added + left + other or ["prompts in another order"]


def describe_progress(plan: Path, records: Path) -> str:
    """Say how many blocks of a campaign are measured, and how long the rest may take.

    `plan` is `plan.json`, which the workflow writes when it starts; `records` holds `<block>.json`.
    """
    if not plan.exists():
        return "measured"
    planned = json.loads(plan.read_text(encoding="utf-8"))
    estimated, again = planned["estimated_s"], planned["again"]
    began = plan.stat().st_mtime
    measured = {
        block: seconds
        for block, seconds in measured_seconds(estimated, records).items()
        if block not in again or (records / f"{block}.json").stat().st_mtime > began
    }
    counts = f"{len(measured)} of {len(estimated)} blocks"
    left = seconds_left(estimated, measured)
    if left is None or len(measured) == len(estimated):
        return counts
    return f"{counts}, {duration(left)} left"
