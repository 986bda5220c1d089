"""Compile our own programs against an engine that was built from source."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.engine.programs import build_programs


def main() -> None:
    """Parse the command line and compile the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--log", required=True, type=Path, help="receives the tools' output")
    args = parser.parse_args()
    with args.log.open("w") as output:
        build_programs(args.engine.parent, output.fileno())


if __name__ == "__main__":
    errors.run(main)
