"""Give packed campaigns the columns of runs that are newer than they, as null."""

import argparse
import tomllib
from pathlib import Path

from specmoe import errors
from specmoe.runs.crate import seal
from specmoe.runs.schema import add_columns

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def main() -> None:
    """Parse the command line, rewrite the runs, and seal each campaign again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", type=Path, nargs="+", metavar="FOLDER")
    args = parser.parse_args()
    for folder in args.campaigns:
        add_columns(folder / "runs.parquet")
        seal(folder, tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"])


if __name__ == "__main__":
    errors.run(main)
