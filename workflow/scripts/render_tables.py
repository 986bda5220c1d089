"""Render the paper's tables and its macros from the analysis of a campaign."""

import argparse
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.errors import run
from specmoe.paper.macros import macros
from specmoe.paper.tables import render_table
from specmoe.tables.tables import ROWS


def main() -> None:
    """Parse the command line, render, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", type=Path, required=True, help="folder of the analysis")
    parser.add_argument("--paper", type=Path, required=True, help="folder of tables.yaml")
    parser.add_argument("--out", type=Path, required=True, help="folder for <table>.tex")
    parser.add_argument("--macros", type=Path, required=True, help="file for the numbers in text")
    arguments = parser.parse_args()
    analysis = Analysis.read(arguments.analysis)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in ROWS:
        text = render_table(name, analysis, arguments.paper)
        (arguments.out / f"{name}.tex").write_text(text, encoding="utf-8")
    arguments.macros.write_text(macros(analysis), encoding="utf-8")


if __name__ == "__main__":
    run(main)
