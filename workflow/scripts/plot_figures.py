"""Plot the paper's figures from the analysis of a campaign, each as PDF and PNG."""

import argparse
from pathlib import Path

from specmoe.analysis import Analysis
from specmoe.errors import run
from specmoe.figures import FIGURES, save


def main() -> None:
    """Parse the command line, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", type=Path, required=True, help="folder of the analysis")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    arguments = parser.parse_args()
    analysis = Analysis.read(arguments.analysis)
    for name, draw in FIGURES.items():
        save(draw(analysis), arguments.out / name)


if __name__ == "__main__":
    run(main)
