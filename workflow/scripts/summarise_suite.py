"""Say what one suite measured, as plain text."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.analysis.terminal import summarise_suite
from specmoe.config.schema import read_config
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line and write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--suite", required=True)
    parser.add_argument("--runs", required=True, type=Path, help="rows of the suite")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    config = read_config(args.config)
    text = summarise_suite(read_runs(args.runs), args.suite, config)
    args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    errors.run(main)
