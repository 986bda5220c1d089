"""Render a campaign's tables, numbers and figures: for the paper and for the page."""

import json
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.command_line import script
from specmoe.figures.figures import FIGURES, figures_of, save
from specmoe.page.data import write_tables
from specmoe.page.figures import page_figures
from specmoe.paper.latex import command_name
from specmoe.paper.macros import exhibits as exhibits_of
from specmoe.paper.macros import macros as macros_of
from specmoe.paper.macros import switch_file
from specmoe.paper.tables import render_table
from specmoe.tables.tables import read_tables


@script
def main(
    analysis: Path,
    specifications: Path,
    captions: Path,
    tables: Path,
    figures: Path,
    macros: Path,
    exhibits: Path,
    page: Path,
    cells: Path,
) -> None:
    analysis = Analysis.read(analysis)
    tables.mkdir(parents=True)
    for name in read_tables(specifications):
        text = render_table(name, analysis, specifications)
        (tables / f"{name}.tex").write_text(text, encoding="utf-8")
    write_tables(analysis, specifications, cells)
    macros.write_text(macros_of(analysis, specifications), encoding="utf-8")
    plots = figures_of(analysis)
    save(plots, figures)
    switched = {command_name("figure", name): name in plots for name in FIGURES}
    (figures / "switches.tex").write_text(switch_file(switched), encoding="utf-8")
    shown = exhibits_of(analysis, plots, specifications, captions)
    exhibits.write_text(shown, encoding="utf-8")
    page.write_text(json.dumps(page_figures(plots)), encoding="utf-8")
