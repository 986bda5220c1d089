"""Tables as `paper/tables.yaml` specifies them, filled with the rows of a campaign."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.analysis.number_text import DASH
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.tables import rows, study_rows
from specmoe.tables.columns import Cell, Medium, TableColumn
from specmoe.tables.exhibits import Exhibit, read_yaml
from specmoe.tables.rows import Rows

_FUNCTIONS: dict[str, Callable[[Analysis], Rows | pd.DataFrame]] = {
    name: value
    for module in (rows, study_rows)
    for name, value in vars(module).items()
    if getattr(value, "__annotations__", {}).get("return") in (Rows, pd.DataFrame)
}


@lru_cache(maxsize=1)
def rows_of(analysis: Analysis, path: Path) -> dict[str, Rows]:
    """Return the rows of every table of `path`, which paper and page ask for several times.

    They are those of the function of the table's name, or else the analysis's table of that name.
    """
    made = {}
    for name in read_tables(path):
        function = _FUNCTIONS.get(name)
        found = function(analysis) if function else getattr(analysis, name)
        made[name] = found if isinstance(found, Rows) else Rows(records(found))
    return made


class Specification(Exhibit):
    """A table as `paper/tables.yaml` specifies it."""

    caption: str
    columns: list[TableColumn]
    each: tuple[TableColumn, ...] = ()
    group: str = ""
    once: int = 0
    above: str = ""
    below: str = ""
    spaced: bool = False
    long: bool = False
    transposed: bool = False


@dataclass(frozen=True)
class Table:
    """A table of a campaign: its columns, and its rows as records and as cells.

    `totals` are the rows that stay at the end, however the others are sorted.
    """

    about: Specification
    columns: list[TableColumn]
    records: list[Record]
    rows: list[list[Cell]]
    totals: list[list[Cell]]

    def first(self, most: int) -> "Table":
        """Return the table with its first rows alone, `most` at most."""
        return replace(self, records=self.records[:most], rows=self.rows[:most])


@cache
def read_tables(path: Path) -> dict[str, Specification]:
    """Return the specifications of all tables by name.

    Raises pydantic.ValidationError where one has a field that is unknown or wrong.
    """
    read = read_yaml(path)
    for about in read["tables"].values():
        for part in ("columns", "each"):
            about[part] = [_column(entry, read["columns"]) for entry in about.get(part, [])]
    return {name: Specification(**about) for name, about in read["tables"].items()}


def table_of(about: Specification, content: Rows, medium: Medium) -> Table:
    """Return a table with the columns that a medium shows of it."""
    repeated = [
        column.model_copy(update={"of": name, "place": place})
        for place, name in enumerate(content.of)
        for column in about.each
    ]
    columns = [
        column
        for column in [*about.columns, *repeated]
        if column.only in (None, medium)
        and not (column.optional and {column.show(row).text for row in content.rows} <= {"", DASH})
    ]
    shown, totals = _cells(columns, content.rows), _cells(columns, content.totals)
    return Table(about, columns, content.rows, shown, totals)


def page_tables(analysis: Analysis, path: Path) -> dict[str, Table]:
    """Return the tables that the campaign has rows for, as the page shows them."""
    tables = {}
    for name, about in read_tables(path).items():
        content = rows_of(analysis, path)[name]
        if content.rows:
            tables[name] = table_of(about, content, "page")
    return tables


def _column(entry: Any, shared: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a column's fields: its own, over those of the shared column that it names."""
    if isinstance(entry, str):
        entry = {"use": entry}
    own = dict(entry)
    name = own.pop("use", None)
    fields = {"key": name} | shared[name] if name else {}
    return fields | own


def _cells(columns: Sequence[TableColumn], rows: Sequence[Record]) -> list[list[Cell]]:
    return [[column.show(row) for column in columns] for row in rows]
