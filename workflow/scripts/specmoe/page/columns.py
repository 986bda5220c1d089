"""The columns of the page's tables: the numbers of the paper's, and what each is sorted by.

A column has its English head; `paper/site/chinese.yaml` has the Chinese one.
"""

import re
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from math import nan
from typing import Any, NamedTuple

import pandas as pd

from specmoe.page.templates import DASH, plain
from specmoe.paper import latex

Row = Any
"""A row of a table's context: a dict by column, or a pair."""


class Kind(StrEnum):
    """How a column is set and sorted."""

    NUMBER = "number"
    TEXT = "text"
    PROSE = "prose"  # sentences


class Cell(NamedTuple):
    """What a cell shows, the number it is sorted by (None: its text), and how it stands out."""

    text: str
    key: float | None = None
    mark: str = ""
    strong: bool = False


class Column(NamedTuple):
    """A column: its head, its cell of a row, and when a table has it; `of` names one draft's."""

    head: str
    show: Callable[[Row], Cell]
    kind: Kind = Kind.NUMBER
    of: str = ""
    when: Callable[[Mapping[str, Any]], bool] = lambda context: True


def text(head: str, key: str | int, kind: Kind = Kind.TEXT) -> Column:
    """Return a column of words."""
    return Column(head, lambda row: Cell(plain(row[key])), kind)


def shown(head: str, key: str, form: Callable[[Any], latex.Raw]) -> Column:
    """Return a column of numbers in one of `latex`'s forms."""
    return Column(head, lambda row: Cell(plain(form(row[key])), _key(row[key])))


def number(head: str, key: str, digits: int = 1) -> Column:
    """Return a column of numbers with that many decimals."""
    return shown(head, key, partial(latex.fixed, digits=digits))


def share(head: str, key: str, digits: int = 1) -> Column:
    """Return a column of shares in percent, whose sign stands in the head."""
    return shown(head, key, partial(latex.percent, digits=digits))


def count(head: str, key: str) -> Column:
    """Return a column of counts."""
    return shown(head, key, latex.thousands)


def size(head: str, key: str) -> Column:
    """Return a column of files' bytes."""
    return shown(head, key, latex.size)


def parameters(head: str, key: str) -> Column:
    """Return a column of numbers of parameters."""
    return shown(head, key, latex.parameters)


def deviated(head: str, key: str) -> Column:
    """Return a column of means with their standard deviations, in `<key>_sd`."""

    def show(row: Row) -> Cell:
        spread = plain(latex.plus_minus(row[f"{key}_sd"]))
        return Cell(_joined(plain(latex.fixed(row[key])), spread), _key(row[key]))

    return Column(head, show)


def measured(head: str, key: str, ends: str = "", digits: int = 2, scale: int = 1) -> Column:
    """Return a column of numbers with their intervals, from `<ends>_low` to `<ends>_high`."""
    ends = ends or key

    def show(row: Row) -> Cell:
        value, low, high = (
            nan if pd.isna(row[name]) else scale * float(row[name])
            for name in (key, f"{ends}_low", f"{ends}_high")
        )
        reach = plain(latex.interval(low, high, digits))
        return Cell(_joined(plain(latex.fixed(value, digits)), reach), _key(value))

    return Column(head, show)


def interval(head: str, ends: str) -> Column:
    """Return a column of intervals alone."""

    def show(row: Row) -> Cell:
        low, high = row[f"{ends}_low"], row[f"{ends}_high"]
        return Cell(plain(latex.interval(low, high)) or DASH, _key(low))

    return Column(head, show)


def ratio(head: str, part: str, whole: str) -> Column:
    """Return a column of counts out of others."""

    def show(row: Row) -> Cell:
        counts = (plain(latex.thousands(row[key])) for key in (part, whole))
        return Cell(" / ".join(counts), _key(row[part]))

    return Column(head, show)


def written(head: str, get: Callable[[Row], Any]) -> Column:
    """Return a column of what a table's context has as it is shown, sorted by its first number."""

    def show(row: Row) -> Cell:
        words = plain(get(row))
        found = re.search(r"-?\d+(\.\d+)?", words.replace("−", "-"))
        return Cell(words, float(found[0]) if found else None)

    return Column(head, show)


def marked(column: Column, mark: str, when: Callable[[Row], bool]) -> Column:
    """Return the column with a mark in some cells, which the table's note explains."""
    return column._replace(
        show=lambda row: column.show(row)._replace(mark=mark if when(row) else "")
    )


def strong(column: Column, when: Callable[[Row], bool]) -> Column:
    """Return the column with some cells in bold."""
    return column._replace(show=lambda row: column.show(row)._replace(strong=bool(when(row))))


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _key(value: Any) -> float | None:
    # Infinity has no name that both Python writes and a browser reads.
    return None if pd.isna(value) else min(float(value), sys.float_info.max)
