"""Compile the program that times passes against an engine that was built from source."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.engine.pass_bench import build_pass_bench


def main() -> None:
    """Parse the command line and compile the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--log", required=True, type=Path, help="receives the tools' output")
    args = parser.parse_args()
    with args.log.open("w") as output:
        build_pass_bench(args.engine.parent, output.fileno())


if __name__ == "__main__":
    errors.run(main)
