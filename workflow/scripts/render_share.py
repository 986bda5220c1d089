"""Render a campaign's files to share: a captioned picture, and tables."""

import argparse
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.errors import run
from specmoe.files import replace_text
from specmoe.page.data import write_tables
from specmoe.page.share import markdown, picture, save_picture


def main() -> None:
    """Parse the command line, render, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", type=Path, required=True, help="folder of the analysis")
    parser.add_argument("--tables", type=Path, required=True, help="tables.yaml")
    parser.add_argument("--picture", type=Path, required=True, help="a PNG with its caption in it")
    parser.add_argument("--table", type=Path, required=True, help="the answer, and every setting")
    parser.add_argument("--cells", type=Path, required=True, help="folder for <table>.csv")
    args = parser.parse_args()
    analysis = Analysis.read(args.analysis)
    save_picture(picture(analysis), args.picture)
    replace_text(args.table, markdown(analysis, args.tables))
    write_tables(analysis, args.tables, args.cells)


if __name__ == "__main__":
    run(main)
