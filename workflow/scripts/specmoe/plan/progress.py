"""What jobs take of a plan: how far the campaign is, what is left, and whether it fits."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from specmoe.errors import PlanError
from specmoe.files import read_record
from specmoe.words import counted, verb

NAMED = 5


def describe_missing(blocks: Iterable[str], records: Path, logs: Path) -> str:
    """Say which blocks failed and how many were not started; empty if all are measured.

    `records` holds `<block>.jsonl` of every measured block, `logs` `<block>.log` of every started
    one.
    """
    blocks = list(blocks)
    missing = [block for block in blocks if not (records / f"{block}.jsonl").exists()]
    failed = [block for block in missing if (logs / f"{block}.log").exists()]
    if not missing:
        return ""
    lines = [
        f"{len(missing)} of {counted(len(blocks), 'block')} {verb(len(missing))} not measured, and"
        f" nothing that needs them is made: failed or interrupted {len(failed)}, not started"
        f" {len(missing) - len(failed)}."
    ]
    lines += [f"  {block}: see {logs / block}.log" for block in failed[:NAMED]]
    if len(failed) > NAMED:
        lines.append(f"  and {len(failed) - NAMED} more")
    lines.append("Measured blocks are kept; the same command goes on.")
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

    `plan` is `plan.json`, which the workflow writes when it starts; `records` holds
    `<block>.jsonl`. The pace is that of the blocks which were measured then.
    """
    if not plan.exists():
        return "measured"
    planned = read_record(plan)
    estimated, known = planned["estimated_s"], planned["measured_s"]
    missing = {block for block in estimated if not (records / f"{block}.jsonl").exists()}
    counts = f"{len(estimated) - len(missing)} of {counted(len(estimated), 'block')}"
    left = seconds_left({block: estimated[block] for block in missing | known.keys()}, known)
    return f"{counts}, {duration(left)} left" if missing and left is not None else counts


def refusal(shortfalls: Sequence[str]) -> str:
    """Say what does not fit, and what to do about it."""
    return "\n".join(
        [
            "this campaign cannot be measured here as it is:",
            *(f"  {shortfall}" for shortfall in shortfalls),
            "Leave out suites (campaign.suites), measure small synthetic models with"
            " --configfile config/synthetic.yaml, or render a campaign that is measured already"
            " (README, Rendered in a minute). --config room=ignored goes on regardless.",
        ]
    )


def check_room(plan: Path, room: str) -> None:
    """Raise PlanError if the plan, a JSON file, lists a shortfall and `room` is `checked`."""
    if room == "checked" and plan.exists():
        shortfalls = read_record(plan)["shortfalls"]
        if shortfalls:
            raise PlanError("nothing is downloaded: " + refusal(shortfalls))
