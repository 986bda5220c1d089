"""A campaign rendered from its analysis: the paper; the page, its figures and data.

The page's figures are SVG inside it; those that show nothing are left out. A figure of many points
is large as SVG, so where all would make the page heavy, the largest are PNG.
"""

import csv
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd
from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures.figures import figures_of, save
from specmoe.figures.style import applied
from specmoe.files import replace_text
from specmoe.measure.trace import Recording
from specmoe.page.page import data_names, render_page
from specmoe.paper.documents import render_documents
from specmoe.paper.tables import render_table
from specmoe.plan.campaign import ROOT
from specmoe.tables.exhibits import tables_of

# The first characters of what a spreadsheet runs as a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")
# Their letters are sized for print; on a screen these are as large as the text around them.
PIXELS_AN_INCH = 120
MOST_BYTES = 2_000_000
"""Of all figures together, as SVG; those that go over it are PNG, from the largest on."""


def render_paper(analysis: Path, cells: Path, out: Path) -> None:
    """Render the paper with what it includes, and the page's figures, into a folder.

    `cells` receives the tables' cells as CSV.
    """
    found = Analysis.read(analysis)
    specifications = ROOT / "paper/tables.yaml"
    (out / "tables").mkdir(parents=True)
    for name, table in tables_of(found, specifications).items():
        text = render_table(name, table, found)
        (out / f"tables/{name}.tex").write_text(text, encoding="utf-8")
    write_tables(found, specifications, cells)
    plots = figures_of(found)
    save(plots, out / "figures")
    for name, text in render_documents(found, plots, ROOT / "paper").items():
        (out / f"{name}.tex").write_text(text, encoding="utf-8")
    text = json.dumps(page_figures(plots))
    (out / "page_figures.json").write_text(text, encoding="utf-8")


def render_site(analysis: Path, figures: Path, out: Path, trace: Path | None = None) -> None:
    """Render the page, `index.html`, into a folder, with its data in `data/` beside it.

    `figures` holds those of `render_paper`, `trace` the recorded demonstration.
    """
    found = Analysis.read(analysis)
    recording = Recording.read(trace) if trace else None
    write_data(found, recording, out / "data")
    pictures = json.loads(figures.read_text(encoding="utf-8"))
    paper, citation = ROOT / "paper", ROOT / "CITATION.cff"
    page = render_page(found, pictures, recording, paper=paper, citation=citation)
    replace_text(out / "index.html", page)


class Picture(TypedDict):
    """A figure as a data URL, and its size in pixels."""

    address: str
    width: int
    height: int


@applied()
def page_figures(figures: Mapping[str, Figure]) -> dict[str, Picture]:
    """Return the pictures of figures by name; equal figures give equal ones."""
    pictures = {name: _picture(figure, "svg+xml", "Date") for name, figure in figures.items()}
    for name in _too_large({name: len(one["address"]) for name, one in pictures.items()}):
        pictures[name] = _picture(figures[name], "png", "Software")
    return pictures


def _too_large(sizes: Mapping[str, int]) -> list[str]:
    """Return the largest of the figures, as many as must go for the others to fit."""
    left, named = sum(sizes.values()), []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if left <= MOST_BYTES:
            break
        left -= sizes[name]
        named.append(name)
    return named


def _picture(figure: Figure, kind: str, varying: str) -> Picture:
    """Return a picture of a kind, without the metadata that differ each time."""
    saved = BytesIO()
    figure.savefig(saved, format=kind.split("+")[0], metadata={varying: None})
    address = f"data:image/{kind};base64,{b64encode(saved.getvalue()).decode()}"
    width, height = (round(PIXELS_AN_INCH * inches) for inches in figure.get_size_inches())
    return Picture(address=address, width=width, height=height)


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
    """Write `<table>.csv` for each of `exhibits.tables_of`, its cells as text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables_of(analysis, specifications).items():
        heads = [column.head.en for column in table.columns]
        rows = [[_harmless(cell.whole) for cell in row] for row in table.rows]
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
