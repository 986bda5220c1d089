"""The data behind the page: the analysis as CSV and Parquet, and the demonstration's record."""

import csv
import re
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.analysis.registry import TABLES, Analysis
from specmoe.measure.trace import Recording
from specmoe.tables.tables import page_tables

# The first characters of what a spreadsheet runs as a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")


def write_data(analysis: Analysis, recording: Recording | None, folder: Path) -> None:
    """Write `<table>.csv` and `<table>.parquet` for each of `data_names`, and `trace.json`.

    In the CSV, an apostrophe stands before words that a spreadsheet would take for a formula.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if recording:
        (folder / "trace.json").write_text(recording.to_json(), encoding="utf-8")
    for name in data_names(analysis):
        frame: pd.DataFrame = getattr(analysis, name)
        frame.to_parquet(folder / f"{name}.parquet", index=False)
        words = frame.select_dtypes(["object", "string"])
        harmless = frame.assign(**{str(key): words[key].map(_harmless) for key in words})
        harmless.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def write_tables(analysis: Analysis, specifications: Path, folder: Path) -> None:
    """Write `<table>.csv` for each of `tables.page_tables`, its cells as the page shows them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in page_tables(analysis, specifications).items():
        heads = [column.full_head.en for column in table.columns]
        rows = [[_harmless(cell.whole) for cell in row] for row in [*table.rows, *table.totals]]
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def data_names(analysis: Analysis) -> list[str]:
    """Return the tables of the analysis that have rows."""
    return [name for name in TABLES if len(getattr(analysis, name))]


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
