"""Text and tables as LaTeX.

Special characters are escaped, the signs of numbers in their LaTeX form. A table is a `tabular`, or
a `longtable` that runs over pages, from neutral cells.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from specmoe.analysis.number_text import DASH, THIN, percent, shown
from specmoe.analysis.registry import Analysis, Record
from specmoe.tables.exhibits import REACHES, Cell, Table, TableColumn

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    # A pair of hyphens would become a dash.
    "--": "-{}-",
    DASH: "--",
    THIN: r"\,",
    "−": "$-$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "†": r"$^\dagger$",
}
_SPECIAL = re.compile("|".join(map(re.escape, _ESCAPES)))
# Latin letters and the signs of text are in the fonts; a test sets each of them.
_WITHOUT_FONT = re.compile("[^ -~\u00a1-\u017eγ–—‘’‚“”„†‡•…‰‹›€™]|[ĦħĸĿŀŉŦŧ]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACES = re.compile(rf"[^\S{THIN}]+")

# Rows of a table on one page, and of one over pages; the others are in a file, which a line names.
ON_A_PAGE, OVER_PAGES = 60, 400

# In a narrow paragraph the path of a file may break.
_BREAKS = re.compile(r"(?<=[a-z])([/.])(?=[a-z])")
# Letters of the longest name that stands on one line of a table over pages, and how longer ones do.
_LONGEST_NAME = 18
_SHARE_OF_NAMES = "0.15"


def to_latex(value: Any) -> str:
    """Return LaTeX that prints a value's text and does nothing else, a dash for null.

    Line ends become spaces and control characters vanish, as TeX refuses them. Characters for which
    the documents have no font become their numbers, so that labels in another script differ
    and no paper fails on them; the page prints them as they are.
    """
    text = _SPACES.sub(" ", _CONTROL.sub("", shown(value))).strip(" ")
    escaped = _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text)
    return _WITHOUT_FONT.sub(lambda match: f"[U+{ord(match[0]):04X}]", escaped)


def render_table(name: str, whole: Table, analysis: Analysis) -> str:
    """Return a campaign's table of that name as LaTeX."""
    long = whole.long
    printed = {column.key for column in whole.columns if column.print is not False}
    table = whole.part(printed, OVER_PAGES if long else ON_A_PAGE)
    columns = zip(table.columns, zip(*table.rows, strict=True), strict=True)
    alignment = "".join(_alignment(column, cells, long=long) for column, cells in columns)
    rows = [
        [_cell(column, cell, row) for column, cell in zip(table.columns, cells, strict=True)]
        for row, cells in zip(table.records, table.rows, strict=True)
    ]
    head = _head(table.columns, analysis.campaign["confidence"].iloc[0])
    body = [*_body(table, rows)]
    if table.about.transposed:
        heads = [to_latex(column.head.en) for column in table.columns]
        lines = [_line(cells) for cells in zip(heads, *rows, strict=True)]
        alignment, head, body = "l" * (1 + len(table.rows)), lines[:1], lines[1:]
    elif len(table.rows) < len(whole.rows):
        shown = f"The first {len(table.rows)} of {len(whole.rows)} rows"
        words = to_latex(f"{shown}; all are in results/{analysis.name}/tables/{name}.csv.")
        body.append(rf"\midrule \multicolumn{{{len(table.columns)}}}{{l}}{{\emph{{{words}}}}} \\")
    head = [r"\toprule", *head, r"\midrule"]
    if long:
        start = [r"\setlength{\tabcolsep}{2.5pt}", rf"\begin{{longtable}}{{{alignment}}}"]
        heads = [*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
        lines = [*start, r"\PagesCaption", *heads, *body, r"\end{longtable}"]
    else:
        start = [rf"\begin{{tabular}}{{{alignment}}}", *head]
        lines = [*start, *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _head(columns: Sequence[TableColumn], confidence: float) -> list[str]:
    """Return the lines of the headings: one, or two where words stand over those of a column."""
    level = rf"{percent(confidence, 0)}\,\%"
    heads = [column.print or to_latex(column.head.en) for column in columns]
    parts = [head.replace("<confidence>", level).rpartition(" | ") for head in heads]
    last = _line([below for _, _, below in parts])
    if not any(over for over, _, _ in parts):
        return [last]
    first, rules, end = [], [], 0
    for over, members in groupby(over for over, _, _ in parts):
        span = len(list(members))
        start, end = end + 1, end + span
        spans = over and span > 1
        first += [rf"\multicolumn{{{span}}}{{c}}{{{over}}}"] if spans else [over] * span
        if spans:
            rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
    return [_line(first), *rules, last]


def _body(table: Table, rows: Sequence[list[str]]) -> Iterator[str]:
    """Yield the lines of the rows, with what stands between them.

    In a group, names are left out that the row above has. The first of the names is a group's own;
    the others are left out together.
    """
    about, width = table.about, len(table.columns)
    above: Record = {}
    names_above: list[str] = []
    for row, cells, latex in zip(table.records, table.rows, rows, strict=True):
        grouped = bool(above) and row.get(about.group) == above.get(about.group)
        names = [cell.text for cell in cells[1 : about.once]]
        if above and (about.spaced or not grouped):
            yield r"\addlinespace[2pt]" if table.long and about.spaced else r"\addlinespace"
        heading = row.get(about.above)
        if pd.notna(heading) and heading != above.get(about.above):
            heading = rf"\groupheading{{\emph{{{to_latex(heading)}}}}}"
            yield rf"\multicolumn{{{width}}}{{l}}{{{heading}}} \\*"
        known = (about.once if names == names_above else min(about.once, 1)) if grouped else 0
        yield _line([""] * known + latex[known:])
        below = row.get(about.below)
        if pd.notna(below):
            yield _line(["", rf"\multicolumn{{{width - 1}}}{{l}}{{\emph{{{to_latex(below)}}}}}"])
        above, names_above = row, names


def _cell(column: TableColumn, cell: Cell, row: Record) -> str:
    text = to_latex(cell.text)
    if column.align.startswith("p"):
        text = _BREAKS.sub(r"\1\\allowbreak{}", text)
    if column.aside:
        text = rf"{text} \emph{{{to_latex(row[column.aside])}}}"
    if cell.strong:
        text = rf"\textbf{{{text}}}"
    mark = "$^*$" if cell.mark == "*" else to_latex(cell.mark)
    return f"{text} {to_latex(cell.reach)}{mark}" if cell.reach else f"{text}{mark}"


def _alignment(column: TableColumn, cells: Sequence[Cell], *, long: bool) -> str:
    """Return a column's alignment; a table over pages has long names in lines, for its size."""
    kind, _, share = column.align.partition(" ")
    may = long and column.kind == "text" and not kind
    if may and max(len(cell.text) for cell in cells) > _LONGEST_NAME:
        kind, share = "p", _SHARE_OF_NAMES
    if kind == "p":
        return rf">{{\raggedright\arraybackslash}}p{{{share}\linewidth}}"
    return column.align or ("r" if column.kind == "number" and column.form not in REACHES else "l")


def _line(cells: Sequence[str]) -> str:
    line = " & ".join(cells)
    # TeX would read these as arguments of the line's end before them.
    return ("{}" if line.startswith(("[", "*")) else "") + line + r" \\"
