"""What requests at once do to the gain of drafting, in words."""

from math import isnan

from specmoe.analysis.number_text import measured
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.words import counted

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NAMED = 3


def describe_concurrency(analysis: Analysis) -> list[str]:
    """Return sentences on how gains change with requests at once; none where that was not measured.

    A setting is named as falling or rising only if its interval says so; those of all settings hold
    at once.
    """
    rows = records(analysis.concurrency_changes)
    lines = []
    for found in ("falls", "rises"):
        own = [row for row in rows if row["found"] == found]
        own.sort(key=lambda row: row["change"], reverse=found == "rises")
        lines += [_sentence(row) for row in own[:_NAMED]]
        if len(own) > _NAMED:
            lines.append(f"It {found} for {counted(len(own) - _NAMED, 'more setting')}.")
    undecided = sum(row["found"] == "undecided" for row in rows)
    if undecided:
        lines.append(_undecided(rows, undecided))
    return lines


def _sentence(row: Record) -> str:
    """Return what the gain of one setting does, which its interval shows."""
    return (
        f"With {_count(row['most'])} requests at once instead of {_count(row['least'])}, the"
        f" speedup of {row['target_label']} with {row['setting']} in throughput {row['found']} from"
        f" {_ratio(row, 'at_least')} to {_ratio(row, 'at_most')}: by a factor of"
        f" {_ratio(row, 'change')}."
    )


def _undecided(rows: list[Record], undecided: int) -> str:
    if undecided < len(rows):
        return f"For {undecided} of {len(rows)} settings the intervals do not say."
    if all(isnan(row["change_low"]) for row in rows):
        return "One block each does not say whether requests at once change what drafting gains."
    what = "the setting's interval does" if len(rows) == 1 else f"all {len(rows)} intervals do"
    return (
        f"Whether requests at once change what drafting gains is undecided: {what} not exclude that"
        " nothing changes."
    )


def _count(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def _ratio(row: Record, name: str) -> str:
    return measured(row[name], row[f"{name}_low"], row[f"{name}_high"])
