"""A campaign rendered from its analysis: what the paper includes, and the page."""

import json
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.figures.figures import FIGURES, figures_of, save
from specmoe.files import replace_text
from specmoe.measure.trace import Recording
from specmoe.page.data import write_data, write_tables
from specmoe.page.figures import page_figures
from specmoe.page.page import render_page
from specmoe.paper.latex import command_name
from specmoe.paper.macros import exhibits, macros, switch_file
from specmoe.paper.tables import render_table
from specmoe.tables.tables import read_tables


def render_paper(analysis: Path, paper: Path, out: Path, cells: Path) -> None:
    """Render what the paper includes, and the page's figures, into a folder.

    `paper` is the folder of the paper's own texts; `cells` receives the tables' cells as CSV.
    """
    found = Analysis.read(analysis)
    specifications, captions = paper / "tables.yaml", paper / "figures.yaml"
    (out / "tables").mkdir(parents=True)
    for name in read_tables(specifications):
        text = render_table(name, found, specifications)
        (out / f"tables/{name}.tex").write_text(text, encoding="utf-8")
    write_tables(found, specifications, cells)
    (out / "macros.tex").write_text(macros(found, specifications), encoding="utf-8")
    plots = figures_of(found)
    save(plots, out / "figures")
    switched = {command_name("figure", name): name in plots for name in FIGURES}
    (out / "figures/switches.tex").write_text(switch_file(switched), encoding="utf-8")
    shown = exhibits(found, plots, specifications, captions)
    (out / "exhibits.tex").write_text(shown, encoding="utf-8")
    text = json.dumps(page_figures(plots))
    (out / "page_figures.json").write_text(text, encoding="utf-8")


def render_site(
    analysis: Path, figures: Path, paper: Path, citation: Path, trace: Path | None, out: Path
) -> None:
    """Render the page, `index.html`, into a folder, with its data in `data/` beside it.

    `figures` holds those of `render_paper`, `paper` is the folder of the paper's own texts.
    """
    found = Analysis.read(analysis)
    recording = Recording.read(trace) if trace else None
    write_data(found, recording, out / "data")
    pictures = json.loads(figures.read_text(encoding="utf-8"))
    page = render_page(found, pictures, recording, paper=paper, citation=citation)
    replace_text(out / "index.html", page)
