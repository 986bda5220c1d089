"""Tables and figures as `paper/` specifies them, and the tables of a campaign filled in."""

import sys
from collections.abc import Callable, Collection
from functools import cache, partial
from itertools import compress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from specmoe.analysis import number_text, views
from specmoe.analysis.number_text import DASH
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.files import ROOT
from specmoe.yaml_files import read_yaml

PAPER = ROOT / "paper"
_TABLES = PAPER / "tables.yaml"


class Words(NamedTuple):
    """The same words in both languages."""

    en: str
    zh: str


class Cell(NamedTuple):
    """The neutral text of a cell, and what sets it apart.

    `reach` is the deviation or the interval of the number in `text`. Rows are sorted by `key`, or
    by the text where it is None. The caption explains the `mark`.
    """

    text: str
    key: float | None = None
    reach: str = ""
    mark: str = ""
    strong: bool = False

    @property
    def whole(self) -> str:
        """The text with its deviation or interval."""
        return f"{self.text} {self.reach}" if self.reach else self.text


class TableColumn(BaseModel, frozen=True, extra="forbid"):
    """A column as `paper/tables.yaml` specifies it; the file explains the fields."""

    key: str
    head: Words
    print: str | Literal[False] | None = None
    form: str = "text"
    digits: str = ""
    out_of: str = ""
    mark: tuple[str, str] = ("", "")
    strong: str = ""
    aside: str = ""
    optional: bool = False
    align: str = ""

    @property
    def kind(self) -> str:
        """How the column is set and sorted: `prose`, sentences; `text`, or `number`."""
        words = {"prose": "prose"} | dict.fromkeys(["text", "commits", "yes_no"], "text")
        return words.get(self.form, "number")

    def show(self, row: Record) -> Cell:
        """Return the cell of a row."""
        name, *decimals = self.form.split()
        form, *usual = FORMS[name]
        digits = [*map(int, [row[self.digits]] if self.digits else decimals or usual)]
        value = row[f"{self.key}_low" if name in ALONE else self.key]
        text = form(value, *digits)
        reach = REACHES[name](row, self.key, *digits) if name in REACHES else ""
        if name in ALONE:
            text = ALONE[name](row, self.key, *digits) or DASH
        if self.out_of:
            whole = row[self.out_of]
            value = None if pd.isna(whole) else value
            text = DASH if pd.isna(value) else f"{text} / {number_text.thousands(whole)}"
        # Infinity has no name that both Python writes and a browser reads.
        known = self.kind == "number" and pd.notna(value)
        key = min(float(value), sys.float_info.max) if known else None
        sign, flagged = self.mark
        mark = sign if sign and row[flagged] else ""
        return Cell(text, key, reach, mark, strong=bool(self.strong and row[self.strong]))


def _ends(row: Record, key: str, digits: int, scale: int = 1, **how: Any) -> str:
    low, high = scale * np.array([row[f"{key}_low"], row[f"{key}_high"]], float)
    return number_text.interval(low, high, digits, **how)


FORMS: dict[str, tuple[Callable[..., str], *tuple[int, ...]]] = {
    **dict.fromkeys(["text", "prose"], (number_text.shown,)),
    "commits": (number_text.short_commits,),
    "yes_no": (lambda value: "yes" if value else "no",),
    **dict.fromkeys(["number", "mean"], (number_text.fixed, 1)),
    "percent": (number_text.percent, 1),
    **dict.fromkeys(["count", "ratio"], (number_text.thousands,)),
    "size": (number_text.size,),
    "parameters": (number_text.parameters,),
    **dict.fromkeys(["measured", "residual", "interval"], (number_text.fixed, 2)),
    **dict.fromkeys(["measured_percent", "span_percent"], (number_text.percent, 0)),
}
"""The text of a value by its form, with the number of its decimals if no column says it."""

REACHES: dict[str, Callable[..., str]] = {
    "mean": lambda row, key, digits: number_text.plus_minus(row[f"{key}_sd"], digits),
    "measured": _ends,
    "residual": partial(_ends, ratio=False),
    "measured_percent": partial(_ends, scale=100, ratio=False),
}
"""What follows the value of a form that has a deviation or interval."""

ALONE: dict[str, Callable[..., str]] = {
    # The one such column is for other prompts.
    "interval": partial(_ends, wide=number_text.TOO_FEW_PROMPTS),
    "span_percent": lambda row, key, digits: (
        number_text.span((100 * row[f"{key}_low"], 100 * row[f"{key}_high"]), digits)
        if pd.notna(row[f"{key}_low"])
        else ""
    ),
}
"""The text of a form that has two ends and no value."""


class Exhibit(BaseModel, frozen=True, extra="forbid"):
    """A table or figure; `paper/tables.yaml` and `paper/figures.yaml` explain the fields."""

    title: Words
    caption: str
    section: str


class Picture(Exhibit, frozen=True):
    """A figure as `paper/figures.yaml` specifies it."""

    alt: Words


class Specification(Exhibit, frozen=True):
    """A table as `paper/tables.yaml` specifies it."""

    columns: list[TableColumn]
    source: str = Field("", alias="from")
    where: str = ""
    group: str = ""
    once: int = 0
    above: str = ""
    below: str = ""
    spaced: bool = False
    long: int | None = None
    transposed: bool = False


class Table(NamedTuple):
    """A table of a campaign: its columns, and its rows as records and as cells."""

    about: Specification
    columns: list[TableColumn]
    records: list[Record]
    rows: list[list[Cell]]

    @property
    def long(self) -> bool:
        """Whether the paper breaks the table over pages."""
        return self.about.long is not None and len(self.rows) > self.about.long

    def part(self, keys: Collection[str] | None, most: int | None = None) -> "Table":
        """Return the first rows, or all, with the columns of these keys alone, or all."""
        kept = [keys is None or column.key in keys for column in self.columns]
        rows = [[*compress(cells, kept)] for cells in self.rows[:most]]
        return Table(self.about, [*compress(self.columns, kept)], self.records[:most], rows)


@cache
def read_figures() -> dict[str, Picture]:
    """Return the specifications of all figures by name, in the order of `paper/figures.yaml`."""
    return {name: Picture(**about) for name, about in read_yaml(PAPER / "figures.yaml").items()}


@cache
def read_tables(path: Path = _TABLES) -> dict[str, Specification]:
    """Return the specifications of all tables by name.

    Raises pydantic.ValidationError where one has a field that is unknown or wrong.
    """
    return {name: Specification(**about) for name, about in read_yaml(path)["tables"].items()}


@cache
def tables_of(analysis: Analysis, path: Path = _TABLES) -> dict[str, Table]:
    """Return the tables of `path` that the campaign has rows for, by name."""
    tables = {}
    for name, about in read_tables(path).items():
        source = about.source or name
        view = getattr(views, source, None)
        frame = view(analysis) if view else getattr(analysis, source)
        if about.where and len(frame):
            frame = frame.query(about.where)
        if frame.empty:
            continue
        keys = [about.group, about.above, about.below]
        for column in about.columns:
            keys += [column.key, column.digits, column.out_of, column.mark[1], column.strong]
        # What is no name is computed.
        for key in filter(None, keys):
            if not key.isidentifier():
                frame = frame.assign(**{key: frame.eval(key)})
        rows = records(frame)
        columns = [
            column
            for column in about.columns
            if not (column.optional and {column.show(row).text for row in rows} <= {"", DASH})
        ]
        cells = [[column.show(row) for column in columns] for row in rows]
        tables[name] = Table(about, columns, rows, cells)
    return tables
