"""The paper of a campaign, rendered from its analysis: texts, tables and figures."""

import csv
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.figures.figures import save
from specmoe.paper.documents import render_documents
from specmoe.paper.latex import render_table
from specmoe.plan.campaign import ROOT
from specmoe.tables.exhibits import tables_of
from specmoe.text import spreadsheet_text


def render_paper(analysis: Path, cells: Path, out: Path) -> None:
    """Render texts, tables and figures into a folder, and the tables as CSV into another.

    The page shows those of the figures that are saved as SVG too.
    """
    found = Analysis.read(analysis)
    specifications = ROOT / "paper/tables.yaml"
    (out / "tables").mkdir(parents=True)
    for name, table in tables_of(found, specifications).items():
        text = render_table(name, table, found)
        (out / f"tables/{name}.tex").write_text(text, encoding="utf-8")
    write_tables(found, specifications, cells)
    drawn = save(found, out / "figures")
    for name, text in render_documents(found, drawn, ROOT / "paper").items():
        (out / f"{name}.tex").write_text(text, encoding="utf-8")


def write_tables(analysis: Analysis, specifications: Path, folder: Path) -> None:
    """Write `<table>.csv` for each of `exhibits.tables_of`, its cells as text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables_of(analysis, specifications).items():
        heads = [column.head.en for column in table.columns]
        rows = [[spreadsheet_text(cell.whole) for cell in row] for row in table.rows]
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([heads, *rows])
