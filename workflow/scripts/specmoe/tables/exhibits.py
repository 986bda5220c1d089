"""Tables and figures as `paper/` specifies them, and the tables of a campaign filled in."""

import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from specmoe.analysis import number_text, views
from specmoe.analysis.number_text import DASH
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.config.base import read_yaml
from specmoe.plan.campaign import ROOT

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
        words = {"prose": "prose", "text": "text", "commits": "text", "yes_no": "text"}
        return words.get(self.form, "number")

    def show(self, row: Record) -> Cell:
        """Return the cell of a row."""
        name, *digits = self.form.split()
        given = [row[self.digits]] if self.digits else digits
        cell = FORMS[name](self, row, *map(int, given))
        sign, flagged = self.mark
        mark = sign if sign and row[flagged] else ""
        return cell._replace(mark=mark, strong=bool(self.strong and row[self.strong]))


def _plain(form: Callable[..., str]) -> Callable[..., Cell]:
    """Return what shows a single value, in this form."""

    def show(column: TableColumn, row: Record, *digits: int) -> Cell:
        value = row[column.key]
        return Cell(form(value, *digits), sort_key(value) if column.kind == "number" else None)

    return show


def _mean(column: TableColumn, row: Record) -> Cell:
    """Show a mean with its standard deviation, in `<key>_sd`."""
    value, deviation = row[column.key], row[f"{column.key}_sd"]
    return Cell(number_text.fixed(value), sort_key(value), number_text.plus_minus(deviation))


def _measured(column: TableColumn, row: Record, digits: int = 2, scale: int = 1) -> Cell:
    """Show a number with its interval, from `<key>_low` to `<key>_high`."""
    keys = (column.key, f"{column.key}_low", f"{column.key}_high")
    value, low, high = scale * np.array([row[key] for key in keys], float)
    reach = number_text.interval(low, high, digits, ratio=column.form == "measured")
    return Cell(number_text.fixed(value, digits), sort_key(value), reach)


def _interval(column: TableColumn, row: Record) -> Cell:
    low, high = row[f"{column.key}_low"], row[f"{column.key}_high"]
    # The one such column is for other prompts.
    text = number_text.interval(low, high, wide=number_text.TOO_FEW_PROMPTS)
    return Cell(text or DASH, sort_key(low))


def _ratio(column: TableColumn, row: Record) -> Cell:
    """Show a count out of another one; a dash if that is not known."""
    part, whole = row[column.key], row[column.out_of]
    if pd.isna(part) or pd.isna(whole):
        return Cell(DASH)
    return Cell(f"{number_text.thousands(part)} / {number_text.thousands(whole)}", sort_key(part))


FORMS: dict[str, Callable[..., Cell]] = {
    **dict.fromkeys(["text", "prose"], _plain(number_text.shown)),
    "commits": _plain(number_text.short_commits),
    "yes_no": _plain(lambda value: "yes" if value else "no"),
    "number": _plain(number_text.fixed),
    "percent": _plain(number_text.percent),
    "count": _plain(number_text.thousands),
    "size": _plain(number_text.size),
    "parameters": _plain(number_text.parameters),
    "mean": _mean,
    **dict.fromkeys(["measured", "residual"], _measured),
    "measured_percent": lambda column, row, digits=0: _measured(column, row, digits, scale=100),
    "interval": _interval,
    "ratio": _ratio,
}


def sort_key(value: Any) -> float | None:
    """Return the number by which a browser sorts a value; None for null."""
    # Infinity has no name that both Python writes and a browser reads.
    return None if pd.isna(value) else min(float(value), sys.float_info.max)


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
        at = [place for place, one in enumerate(self.columns) if keys is None or one.key in keys]
        rows = [[cells[place] for place in at] for cells in self.rows[:most]]
        columns = [self.columns[place] for place in at]
        return Table(self.about, columns, self.records[:most], rows)


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
    specified = read_tables(path).items()
    tables = {name: _filled(about, about.source or name, analysis) for name, about in specified}
    return {name: table for name, table in tables.items() if table.rows}


def _filled(about: Specification, source: str, analysis: Analysis) -> Table:
    """Return a table with its rows, and what its entry computes of them: all that is no name."""
    view = getattr(views, source, None)
    frame = view(analysis) if view else getattr(analysis, source)
    if about.where and len(frame):
        frame = frame.query(about.where)
    keys = [about.group, about.above, about.below]
    for column in about.columns:
        keys += [column.key, column.digits, column.out_of, column.mark[1], column.strong]
    for key in filter(None, keys):
        if not key.isidentifier() and len(frame):
            frame = frame.assign(**{key: frame.eval(key)})
    found = records(frame)
    columns = [
        column
        for column in about.columns
        if not (column.optional and {column.show(row).text for row in found} <= {"", DASH})
    ]
    return Table(about, columns, found, [[column.show(row) for column in columns] for row in found])
