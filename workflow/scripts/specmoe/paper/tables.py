"""The paper's tables: a `tabular`, or a `longtable` that runs over pages, from neutral cells."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from specmoe.analysis.number_text import percent, thousands
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.paper.latex import to_latex
from specmoe.tables.columns import Cell, Kind, TableColumn
from specmoe.tables.tables import Table, read_tables, rows_of, table_of

NOT_MEASURED = r"""\begin{tabular}{c}
\toprule
Not measured in this campaign. \\
\bottomrule
\end{tabular}
"""

# Rows of a table on one page, and of one over pages; the others are in a file, which a line names.
ON_A_PAGE, OVER_PAGES = 60, 400

# In a narrow paragraph the path of a file may break.
_BREAKS = re.compile(r"(?<=[a-z])([/.])(?=[a-z])")
# Letters of the longest name that stands on one line of a table over pages, and how longer ones do.
_LONGEST_NAME = 18
_SHARE_OF_NAMES = "0.15"
# The alignment of numbers, and of the deviation or interval beside them.
_PAIRS = {"mean": r"r@{\,}l", "measured": r"r@{\ }l", "measured_percent": r"r@{\ }l"}


def render_table(name: str, analysis: Analysis, specifications: Path) -> str:
    """Return a table as LaTeX; one that says so if the campaign measured nothing of it.

    `specifications` is `paper/tables.yaml`.
    """
    rows = rows_of(analysis, specifications)[name]
    if not rows.rows:
        return NOT_MEASURED
    whole = table_of(read_tables(specifications)[name], rows, "paper")
    table = whole.first(OVER_PAGES if whole.about.long else ON_A_PAGE)
    long, columns = table.about.long, zip(table.columns, zip(*table.rows, strict=True), strict=True)
    alignment = "".join(_alignment(column, cells, long=long) for column, cells in columns)
    head, body = _head(table.columns, records(analysis.campaign)[0]), _body(table)
    if table.about.transposed:
        heads = [to_latex(column.head.en) for column in table.columns]
        lines = [_line(cells) for cells in zip(heads, *_latex_rows(table), strict=True)]
        alignment, head, body = "l" * (1 + len(table.rows)), lines[:1], lines[1:]
    elif len(table.rows) < len(whole.rows):
        shown = f"The first {len(table.rows)} of {len(whole.rows)} rows"
        words = to_latex(f"{shown}; all are in results/{analysis.name}/tables/{name}.csv.")
        width = sum(map(_span, table.columns))
        body.append(rf"\midrule \multicolumn{{{width}}}{{l}}{{\emph{{{words}}}}} \\")
    head = [r"\toprule", *head, r"\midrule"]
    if long:
        start = [r"\setlength{\tabcolsep}{2.5pt}", rf"\begin{{longtable}}{{{alignment}}}"]
        heads = [*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
        lines = [*start, r"\PagesCaption", *heads, *body, r"\end{longtable}"]
    else:
        start = [rf"\begin{{tabular}}{{{alignment}}}", *head]
        lines = [*start, *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _head(columns: Sequence[TableColumn], campaign: Record) -> list[str]:
    """Return the lines of the headings: one, or two where words stand over those of a column."""
    pairs = [_heads(column, campaign) for column in columns]
    last = _line(
        [_spanning(head, _span(column)) for column, (_, head) in zip(columns, pairs, strict=True)]
    )
    if not any(over for over, _ in pairs):
        return [last]
    first, rules, end = [], [], 0
    for over, members in groupby(zip(columns, pairs, strict=True), lambda member: member[1][0]):
        spans = [_span(column) for column, _ in members]
        start, end = end + 1, end + sum(spans)
        if over:
            first.append(_spanning(over, sum(spans)))
        else:
            first += [""] * sum(spans)
        if over and len(spans) > 1:
            rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
    return [_line(first), *rules, last]


def _heads(column: TableColumn, campaign: Record) -> tuple[str, str]:
    """Return a column's heading and the words over it, in LaTeX; either may be empty."""
    head = to_latex(column.head.en) if column.print is None else column.print
    over, _, below = head.rpartition(" | ")
    if column.of:
        # A repeated column without a heading of its own is headed by the draft or campaign alone.
        over, below = (to_latex(column.of), below) if below else ("", to_latex(column.of))
    for name, value in {
        "<confidence>": rf"{percent(campaign['confidence'], 0)}\,\%",
        "<precision>": rf"{percent(campaign['precision'], 0)}\,\%",
        "<tokens>": to_latex(thousands(campaign["n_predict"])),
        "<unit>": to_latex(campaign["length_unit"]),
    }.items():
        over, below = over.replace(name, value), below.replace(name, value)
    return over, below


def _body(table: Table) -> list[str]:
    """Return the lines of the rows, with what stands between them, and of the totals."""
    about, width = table.about, sum(_span(column) for column in table.columns)
    lines: list[str] = []
    above: Record = {}
    for row, cells in zip(table.records, _latex_rows(table), strict=True):
        if above and (about.spaced or row.get(about.group) != above.get(about.group)):
            lines.append(r"\addlinespace[2pt]" if about.long and about.spaced else r"\addlinespace")
        heading = row.get(about.above)
        if heading is not None and heading != above.get(about.above):
            heading = rf"\groupheading{{\emph{{{to_latex(heading)}}}}}"
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{{heading}}} \\*")
        lines.append(_line(cells))
        below = row.get(about.below)
        if below is not None:
            note = rf"\multicolumn{{{width - 1}}}{{l}}{{\emph{{{to_latex(below)}}}}}"
            lines.append(_line(["", note]))
        above = row
    if table.totals:
        lines.append(r"\midrule")
    return lines + [_line(_latex(table.columns, cells, {})) for cells in table.totals]


def _latex_rows(table: Table) -> Iterator[list[str]]:
    """Yield the cells of each row; in a group, names are left out that the row above has.

    The first of the names is a group's own; the others are left out together.
    """
    once, group = table.about.once, table.about.group
    above: Record = {}
    above_names: list[str] = []
    for row, cells in zip(table.records, table.rows, strict=True):
        names = [cell.text for cell in cells[:once]]
        latex = _latex(table.columns, cells, row)
        if once and above and row[group] == above[group]:
            latex[0] = ""
            if names[1:] == above_names[1:]:
                latex[:once] = [""] * once
        yield latex
        above, above_names = row, names


def _latex(columns: Sequence[TableColumn], cells: Sequence[Cell], row: Record) -> list[str]:
    return [_cell(column, cell, row) for column, cell in zip(columns, cells, strict=True)]


def _cell(column: TableColumn, cell: Cell, row: Record) -> str:
    text = to_latex(cell.text)
    if column.align.startswith("p"):
        text = _BREAKS.sub(r"\1\\allowbreak{}", text)
    if column.aside:
        text = rf"{text} \emph{{{to_latex(row[column.aside])}}}"
    if cell.strong:
        text = rf"\textbf{{{text}}}"
    mark = "$^*$" if cell.mark == "*" else to_latex(cell.mark)
    if _span(column) > 1:
        return f"{text}{mark} & {to_latex(cell.reach)}"
    reach = f" {to_latex(cell.reach)}" if cell.reach else ""
    return f"{text}{reach}{mark}"


def _alignment(column: TableColumn, cells: Sequence[Cell], *, long: bool) -> str:
    """Return a column's alignment; a table over pages has long names in lines, for its size."""
    kind, _, share = column.align.partition(" ")
    may = long and column.kind == Kind.TEXT and not kind
    if may and max(len(cell.text) for cell in cells) > _LONGEST_NAME:
        kind, share = "p", _SHARE_OF_NAMES
    if kind == "p":
        return rf">{{\raggedright\arraybackslash}}p{{{share}\linewidth}}"
    usual = "r" if column.kind == Kind.NUMBER else "l"
    return column.align or _PAIRS.get(column.form, usual)


def _span(column: TableColumn) -> int:
    """Return how many columns of LaTeX a column takes."""
    return 2 if column.form in _PAIRS and not column.align else 1


def _spanning(text: str, span: int) -> str:
    return rf"\multicolumn{{{span}}}{{c}}{{{text}}}" if span > 1 else text


def _line(cells: Sequence[str]) -> str:
    line = " & ".join(cells)
    # TeX would read these as arguments of the line's end before them.
    return ("{}" if line.startswith(("[", "*")) else "") + line + r" \\"
