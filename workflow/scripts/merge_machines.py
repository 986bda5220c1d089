"""Join campaigns that differ in their machine alone: one table, machine by method."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.analysis.merged import refuse_unlike
from specmoe.analysis.registry import Analysis
from specmoe.analysis.terminal import describe_merged


def main() -> None:
    """Parse the command line, print the table and write it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analyses", required=True, type=Path, nargs="+", help="ours first")
    parser.add_argument("--out", required=True, type=Path, help="the table as CSV")
    args = parser.parse_args()
    analyses = [Analysis.read(folder) for folder in args.analyses]
    refuse_unlike(analyses)
    own = analyses[0]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    own.merged.to_csv(args.out, index=False)
    print(describe_merged(own), end="")


if __name__ == "__main__":
    errors.run(main)
