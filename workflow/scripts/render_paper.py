"""Render a campaign's tables, numbers and figures: for the paper, for the page and to share."""

import argparse
import json
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.errors import run
from specmoe.figures.figures import FIGURES, figures_of, save
from specmoe.page.data import write_tables
from specmoe.page.figures import page_figures
from specmoe.page.share import markdown, save_picture
from specmoe.paper.latex import command_name
from specmoe.paper.macros import exhibits, macros, switch_file
from specmoe.paper.tables import render_table
from specmoe.tables.tables import read_tables


def main() -> None:
    """Parse the command line, render, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", type=Path, required=True, help="folder of the analysis")
    parser.add_argument("--specifications", type=Path, required=True, help="tables.yaml")
    parser.add_argument("--captions", type=Path, required=True, help="figures.yaml")
    parser.add_argument("--tables", type=Path, required=True, help="folder for <table>.tex")
    parser.add_argument("--figures", type=Path, required=True, help="folder, as PDF and PNG")
    parser.add_argument("--macros", type=Path, required=True, help="file for the numbers in text")
    parser.add_argument("--exhibits", type=Path, required=True, help="file for tables and figures")
    parser.add_argument("--page", type=Path, required=True, help="JSON of the figures of the page")
    parser.add_argument("--cells", type=Path, required=True, help="folder for <table>.csv")
    parser.add_argument("--picture", type=Path, required=True, help="a PNG with its caption in it")
    parser.add_argument("--answer", type=Path, required=True, help="the answer, and every setting")
    args = parser.parse_args()
    analysis = Analysis.read(args.analysis)
    args.tables.mkdir(parents=True)
    for name in read_tables(args.specifications):
        text = render_table(name, analysis, args.specifications)
        (args.tables / f"{name}.tex").write_text(text, encoding="utf-8")
    write_tables(analysis, args.specifications, args.cells)
    args.macros.write_text(macros(analysis, args.specifications), encoding="utf-8")
    figures = figures_of(analysis)
    save(figures, args.figures)
    switched = {command_name("figure", name): name in figures for name in FIGURES}
    (args.figures / "switches.tex").write_text(switch_file(switched), encoding="utf-8")
    shown = exhibits(analysis, figures, args.specifications, args.captions)
    args.exhibits.write_text(shown, encoding="utf-8")
    args.page.write_text(json.dumps(page_figures(figures)), encoding="utf-8")
    save_picture(analysis, args.figures, args.picture)
    args.answer.write_text(markdown(analysis, args.specifications), encoding="utf-8")


if __name__ == "__main__":
    run(main)
