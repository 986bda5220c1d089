"""Make the environment that llama.cpp's converter runs in."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.converter import install


def main() -> None:
    """Parse the command line and make the environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirements", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path, help="folder of the environment")
    parser.add_argument("--log", required=True, type=Path, help="output of venv and pip")
    args = parser.parse_args()
    install(args.requirements, args.out, args.log)


if __name__ == "__main__":
    errors.run(main)
