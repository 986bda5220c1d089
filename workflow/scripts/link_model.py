"""Link a user's model file into place."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.files import link


def main() -> None:
    """Parse the command line and link the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    link(args.path, args.out)


if __name__ == "__main__":
    errors.run(main)
