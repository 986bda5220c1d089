"""The tables of the analysis, which `tables.yaml` declares and `Analysis` holds by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from specmoe.analysis import labels
from specmoe.audit.report import table_files
from specmoe.config.base import read_yaml
from specmoe.config.block import ARM_COLUMNS
from specmoe.errors import SchemaError

Record = dict[str, Any]
"""A row of a frame, by column."""


class Table(NamedTuple):
    """A table of the analysis, as `tables.yaml` declares it; the file explains the fields."""

    columns: list[str]
    order: list[str]
    label: Callable[[pd.DataFrame, "Analysis"], pd.DataFrame] | None


def _read_tables() -> dict[str, Table]:
    declared = read_yaml(Path(__file__).with_name("tables.yaml"))
    groups = declared["groups"] | {"arm": ARM_COLUMNS}
    tables = {}
    for name, table in declared["tables"].items():
        columns = [*table["columns"], *chain(*(groups[one] for one in table.get("groups", [])))]
        ends = product(table.get("intervals", []), ("", "_low", "_high"))
        columns += [f"{number}{end}" for number, end in ends]
        label = table.get("label")
        tables[name] = Table(columns, table.get("order", []), label and getattr(labels, label))
    return tables


TABLES = _read_tables()


@dataclass(init=False, eq=False)
class Analysis:
    """The tables of one campaign, by name; other packages compute no numbers of their own.

    A frame is checked, labelled and put in order when it is first read; a file was when it was
    written. `dataclasses.replace` gives an analysis with other tables.
    """

    tables: Mapping[str, pd.DataFrame | Path]

    def __init__(
        self, tables: Mapping[str, pd.DataFrame | Path] | None = None, **more: pd.DataFrame
    ) -> None:
        """Take frames by name; other tables have no rows."""
        self.tables = {**(tables or {}), **more}
        assert self.tables.keys() <= TABLES.keys()
        self._frames: dict[str, pd.DataFrame] = {}

    def __getattr__(self, name: str) -> pd.DataFrame:
        """Return a table, as a frame that the caller may add columns to.

        Raises SchemaError where it has rows and lacks a column.
        """
        if name not in TABLES:
            raise AttributeError(name)
        if name not in self._frames:
            self._frames[name] = self._made(name)
        return self._frames[name].copy(deep=False)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return str(self.campaign["campaign"].iloc[0])

    def write(self, folder: Path) -> None:
        """Write each table as `<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            getattr(self, name).to_parquet(folder / f"{name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> "Analysis":
        """Return what `write` wrote; raises SchemaError for a folder that lacks a table."""
        return cls(table_files(folder, TABLES))

    def _made(self, name: str) -> pd.DataFrame:
        source = self.tables.get(name, pd.DataFrame())
        if isinstance(source, Path):
            return self._with_columns(name, pd.read_parquet(source))
        frame, table = self._with_columns(name, source), TABLES[name]
        frame = table.label(frame, self) if table.label else frame
        by = [column.removeprefix("-") for column in table.order]
        rising = [not column.startswith("-") for column in table.order]
        return frame.sort_values(by, ascending=rising, ignore_index=True) if by else frame

    def _with_columns(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with every column that is used of it; one without rows may lack some."""
        lacking = [column for column in TABLES[name].columns if column not in frame.columns]
        if frame.empty:
            return frame.reindex(columns=[*frame.columns, *lacking]).astype(object)
        if lacking:
            raise SchemaError(
                f"table {name!r} of campaign {self.name!r} has no column {lacking[0]!r};"
                " render that campaign again"
            )
        return frame


def records(frame: pd.DataFrame) -> list[Record]:
    """Return the rows of a frame, each as a dict from column to value."""
    return [
        {str(name): None if value is pd.NA else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
