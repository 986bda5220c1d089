"""The text that is printed after each repeat of a campaign that is measured until it is decided."""

from collections.abc import Collection
from typing import Any

import pandas as pd

from specmoe.analysis.number_text import TOO_FEW_PROMPTS, measured
from specmoe.analysis.registry import Record, records
from specmoe.analysis.summaries import SETTING
from specmoe.plan.campaign import ROOT
from specmoe.text import fill_template, in_columns


def describe_stage(
    repeats: int,
    advice: pd.DataFrame,
    settings: pd.DataFrame,
    further: Collection[tuple[Any, ...]],
) -> str:
    """Return a table of all settings after so many repeats, and a line for each target.

    `advice` and `settings` are the tables `advice` and `advice_settings` of an `Analysis`, with its
    labels; before the first repeat, `advice` has no answer and `settings` only what is predicted
    (predicted, predicted_low, predicted_high, which they may have later too). `further` are the
    settings that the next repeat measures, by SETTING.
    """
    rows = [_row(row, further) for row in records(settings)]
    several = settings["suite"].nunique() > 1
    heads = ["target", *["suite"] * several, "setting"]
    heads += [name for name in ("predicted", "speedup") if any(row[name] for row in rows)]
    cells = [[row[head] for head in heads] + [row["becomes"]] for row in rows]
    values = {
        "repeats": repeats,
        "table": in_columns([[*heads, "what becomes of it"], *cells]),
        "targets": [row | {"best": _number(row, "speedup")} for row in records(advice)],
        "rows": rows,
    }
    return fill_template(ROOT / "paper/stages.txt.j2", **values)


def _row(row: Record, further: Collection[tuple[Any, ...]]) -> Record:
    """Return a setting's cells, and whether it is measured further."""
    goes_on = tuple(row[name] for name in SETTING) in further
    return {
        "predicted": _number(row, "predicted"),
        "speedup": _number(row, "speedup"),
        "id": row["target"],
        "target": row["target_label"],
        "suite": row["suite"],
        "setting": f"{row['draft_label']}, γ = {row['gamma']}",
        "further": goes_on,
        "becomes": "measured further" if goes_on else str(row.get("status", "measured no further")),
    }


def _number(row: Record, name: str) -> str:
    """Return a number of a row with its interval; nothing where it is not known."""
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    return "" if pd.isna(value) else measured(value, low, high, wide=TOO_FEW_PROMPTS)
