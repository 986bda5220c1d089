"""Render the page of a campaign from its analysis, with the data beside it."""

import argparse
import json
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.errors import run
from specmoe.files import replace_text
from specmoe.measure.trace_record import Recording
from specmoe.page.data import write_data
from specmoe.page.page import render_page


def main() -> None:
    """Parse the command line, render, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", type=Path, required=True, help="folder of the analysis")
    parser.add_argument("--figures", type=Path, required=True, help="JSON of its pictures")
    parser.add_argument("--paper", type=Path, required=True, help="folder of words and templates")
    parser.add_argument("--citation", type=Path, required=True, help="CITATION.cff")
    parser.add_argument("--trace", type=Path, nargs="?", help="trace.json, if there is one")
    parser.add_argument("--out", type=Path, required=True, help="the page, index.html")
    parser.add_argument("--data", type=Path, required=True, help="folder for its data")
    args = parser.parse_args()
    analysis = Analysis.read(args.analysis)
    recording = Recording.read(args.trace) if args.trace else None
    write_data(analysis, recording, args.data)
    page = render_page(
        analysis,
        json.loads(args.figures.read_text(encoding="utf-8")),
        recording,
        paper=args.paper,
        citation=args.citation,
    )
    replace_text(args.out, page)


if __name__ == "__main__":
    run(main)
