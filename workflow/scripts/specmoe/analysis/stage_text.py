"""The text that is printed after each repeat of a campaign that is measured until it is decided."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from specmoe.analysis.decision import Verdict
from specmoe.analysis.number_text import TOO_FEW_PROMPTS, measured
from specmoe.plan.campaign import ROOT
from specmoe.text import fill_template, in_columns


def describe_stage(rows: Iterable[Mapping[str, Any]], repeats: int, ended: str = "") -> str:
    """Return a table of all settings after so many repeats, and a line for each target.

    A row has target and setting (labels) and verdict (`Verdict`); where they are known predicted
    and speedup, with their ends `<name>_low` and `<name>_high`; and answer, the target's so far.
    `ended` says why measuring ends.
    """
    numbers = ("predicted", "speedup")
    cells = [
        {
            **row,
            **{name: _number(row, name) for name in numbers},
            "number": row.get(numbers[repeats > 0]),
        }
        for row in rows
    ]
    heads = ["target", "setting", *(name for name in numbers if any(one[name] for one in cells))]
    heads.append("verdict")
    values = {
        "table": in_columns([heads, *([str(one[head]) for head in heads] for one in cells)]),
        "rows": cells,
        "repeats": repeats,
        "known": numbers[repeats > 0],
        "ended": ended,
        "contender": Verdict.CONTENDER,
    }
    return fill_template(ROOT / "paper/stages.txt.j2", **values)


def _number(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    return "" if pd.isna(value) else measured(value, low, high, wide=TOO_FEW_PROMPTS)
