"""Plot the paper's figures from the analysis of a campaign, each as PDF and PNG."""

import argparse
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.errors import run
from specmoe.figures.figures import FIGURES, drawn, save
from specmoe.paper.latex import command_name
from specmoe.paper.macros import switch_file


def main() -> None:
    """Parse the command line, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", type=Path, required=True, help="folder of the analysis")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    parser.add_argument(
        "--switches",
        type=Path,
        required=True,
        help="TeX file that says which figures show anything",
    )
    arguments = parser.parse_args()
    analysis = Analysis.read(arguments.analysis)
    figures = {name: draw(analysis) for name, draw in FIGURES.items()}
    for name, figure in figures.items():
        save(figure, arguments.out / name)
    shown = {command_name("figure", name): drawn(figure) for name, figure in figures.items()}
    arguments.switches.write_text(switch_file(shown), encoding="utf-8")


if __name__ == "__main__":
    run(main)
