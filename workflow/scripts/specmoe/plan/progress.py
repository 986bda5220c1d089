"""How far a campaign is: what is measured, what is left, and how long that may take."""

import heapq
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specmoe.files import named_if_damaged, read_record
from specmoe.words import counted, verb

NAMED = 5
# Records that a block reads for the pace: of all, each would be read again after every later one.
PACE = 50
# A line of a block's log, see `measure.paired`.
_LOGGED_RUN = re.compile(r"^run \d+ of (\d+): .*: ([\d.]+) s, ", re.MULTILINE)


@dataclass(frozen=True)
class MeasuredBlock:
    """What a plan takes from the record of a block."""

    record: Path
    asked: Mapping[str, Any]  # the block as it was measured
    seconds: float


def read_measured(blocks: Iterable[str], records: Path) -> dict[str, MeasuredBlock]:
    """Return the measured ones of the blocks by id; `records` holds `<block>.json`."""
    measured = {}
    for block in blocks:
        file = records / f"{block}.json"
        if file.exists():
            record = read_record(file)
            with named_if_damaged(file):
                asked, seconds = record["block"], float(record["elapsed_s"])
                measured[block] = MeasuredBlock(file, asked, seconds)
    return measured


@dataclass(frozen=True)
class Interrupted:
    """What an unfinished block had measured, which is measured again with the block."""

    runs: int
    of: int
    seconds: float

    def __str__(self) -> str:
        """Return the loss in words."""
        return f"{self.runs} of {counted(self.of, 'run')}, {duration(self.seconds)} of measuring"


def read_interrupted(blocks: Iterable[str], records: Path, logs: Path) -> dict[str, Interrupted]:
    """Return the blocks that were begun and not finished, and lost runs.

    `records` holds `<block>.json` of every measured block, `logs` `<block>.log` of every started
    one, with a line for each run.
    """
    lost = {}
    for block in blocks:
        log = logs / f"{block}.log"
        if log.exists() and not (records / f"{block}.json").exists():
            runs = _LOGGED_RUN.findall(log.read_text(encoding="utf-8"))
            if runs:
                seconds = sum(float(taken) for _, taken in runs)
                lost[block] = Interrupted(len(runs), int(runs[0][0]), seconds)
    return lost


def describe_missing(blocks: Iterable[str], records: Path, logs: Path) -> str:
    """Say which blocks failed and how many were not started; empty if all are measured.

    `records` holds `<block>.json` of every measured block, `logs` `<block>.log` of every started
    one.
    """
    blocks = list(blocks)
    missing = [block for block in blocks if not (records / f"{block}.json").exists()]
    failed = [block for block in missing if (logs / f"{block}.log").exists()]
    if not missing:
        return ""
    lines = [
        f"{len(missing)} of {counted(len(blocks), 'block')} {verb(len(missing))} not measured, and"
        f" nothing that needs them is made: failed or interrupted {len(failed)}, not started"
        f" {len(missing) - len(failed)}."
    ]
    lost = read_interrupted(failed[:NAMED], records, logs)
    for block in failed[:NAMED]:
        loss = f"; {lost[block]} are lost" if block in lost else ""
        lines.append(f"  {block}: see {logs / block}.log{loss}")
    if len(failed) > NAMED:
        lines.append(f"  and {len(failed) - NAMED} more")
    lines.append("Measured blocks are kept; the same command with --rerun-incomplete goes on.")
    if failed:
        lines.append("To render the others without what fails, name it in campaign.left_out.")
    return "\n".join(lines)


def total_seconds(parts: Iterable[float | None]) -> float | None:
    """Return the sum of times; None if one is unknown."""
    seconds = list(parts)
    return None if None in seconds else sum(one for one in seconds if one)


def seconds_left(
    estimated: Mapping[str, float | None], measured: Mapping[str, float]
) -> float | None:
    """Return how long the blocks that are not measured may take, at the pace so far.

    `estimated` has every block of the campaign. A block without an estimate counts as the mean of
    the measured ones. The result is None if a block has no estimate and none is measured.
    """
    known = {name: seconds for name, seconds in estimated.items() if seconds and name in measured}
    rate = sum(measured[name] for name in known) / sum(known.values()) if known else 1.0
    guess = sum(measured.values()) / len(measured) if measured else None
    missing = [seconds for name, seconds in estimated.items() if name not in measured]
    return total_seconds(guess if seconds is None else seconds * rate for seconds in missing)


def duration(seconds: float | None) -> str:
    """Return a time in words."""
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def describe_progress(plan: Path, records: Path) -> str:
    """Say how many blocks of a campaign are measured, and how long the rest may take.

    `plan` is `plan.json`, which the workflow writes when it starts; `records` holds `<block>.json`.
    The pace is that of the blocks that the plan knows, and of the `PACE` latest ones since then.
    """
    if not plan.exists():
        return "measured"
    planned = json.loads(plan.read_text(encoding="utf-8"))
    estimated, known = planned["estimated_s"], planned["measured_s"]
    began, again = plan.stat().st_mtime, set(planned["again"])
    written = {
        block: at
        for block in estimated.keys() - known.keys()
        if (at := _written_at(records / f"{block}.json")) and (block not in again or at > began)
    }
    latest = heapq.nlargest(PACE, written, key=written.__getitem__)
    read = {block: found.seconds for block, found in read_measured(latest, records).items()}
    measured = len(known) + len(written)
    counts = f"{measured} of {counted(len(estimated), 'block')}"
    unread = written.keys() - read.keys()
    asked = {block: seconds for block, seconds in estimated.items() if block not in unread}
    left = seconds_left(asked, known | read)
    if left is None or measured == len(estimated):
        return counts
    return f"{counts}, {duration(left)} left"


def _written_at(record: Path) -> float | None:
    """Return when a record was written; None if there is none."""
    try:
        return record.stat().st_mtime
    except FileNotFoundError:
        return None
