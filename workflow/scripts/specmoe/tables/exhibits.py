"""Tables and figures as `paper/` specifies them, and the tables of a campaign filled in."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from specmoe.analysis import filters
from specmoe.analysis.number_text import DASH
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.tables import rows
from specmoe.tables.columns import Cell, TableColumn, Words


class Exhibit(BaseModel):
    """A table or figure; `paper/tables.yaml` and `paper/figures.yaml` explain the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Words
    caption: str
    section: str


class Picture(Exhibit):
    """A figure as `paper/figures.yaml` specifies it."""

    alt: Words


class Specification(Exhibit):
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


@dataclass(frozen=True)
class Table:
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
def read_figures(path: Path) -> dict[str, Picture]:
    """Return the specifications of all figures by name, in the order of `paper/figures.yaml`."""
    return {name: Picture(**about) for name, about in read_yaml(path).items()}


@cache
def read_tables(path: Path) -> dict[str, Specification]:
    """Return the specifications of all tables by name.

    Raises pydantic.ValidationError where one has a field that is unknown or wrong.
    """
    return {name: Specification(**about) for name, about in read_yaml(path)["tables"].items()}


@lru_cache(maxsize=1)
def tables_of(analysis: Analysis, path: Path) -> dict[str, Table]:
    """Return the tables of `path` that the campaign has rows for, by name."""
    specified = read_tables(path).items()
    tables = {name: _filled(about, about.source or name, analysis) for name, about in specified}
    return {name: table for name, table in tables.items() if table.rows}


def _filled(about: Specification, source: str, analysis: Analysis) -> Table:
    """Return a table with its rows, and what its entry computes of them: all that is no name."""
    choose = getattr(rows, source, None) or getattr(filters, source, None)
    frame = choose(analysis) if choose else getattr(analysis, source)
    if about.where:
        frame = frame.query(about.where)
    asked = [about.group, about.above, about.below]
    asked += [key for column in about.columns for key in column.asked]
    for key in filter(None, asked):
        if not key.isidentifier() and len(frame):
            frame = frame.assign(**{key: frame.eval(key)})
    found = records(frame)
    columns = [
        column
        for column in about.columns
        if not (column.optional and {column.show(row).text for row in found} <= {"", DASH})
    ]
    return Table(about, columns, found, [[column.show(row) for column in columns] for row in found])


def read_yaml(path: Path) -> Any:
    """Return what a YAML file has."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
