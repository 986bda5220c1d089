"""Cut a draft from a model: its first layers, with its embedding, norm and head."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.models.truncate import truncate


def main() -> None:
    """Parse the command line and write the draft."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--layers", required=True, type=int, help="how many layers to keep")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    truncate(args.source, args.layers, args.out)


if __name__ == "__main__":
    errors.run(main)
