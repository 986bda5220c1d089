"""Compile a document of the paper, as it ships, with what was rendered for it."""

import argparse
import sys
from pathlib import Path

from specmoe.errors import run
from specmoe.paper.pdf import compile_pdf


def main() -> None:
    """Parse the command line, compile, and print TeX's complaints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, required=True, help="its .tex file")
    parser.add_argument("--parts", type=Path, nargs="+", required=True, help="what it includes")
    parser.add_argument("--log", type=Path, required=True, help="file for TeX's own log")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    for complaint in compile_pdf(args.document, args.parts, args.out, args.log):
        print(f"{args.document.name}: {complaint}", file=sys.stderr)


if __name__ == "__main__":
    run(main)
