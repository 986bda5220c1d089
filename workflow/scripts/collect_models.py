"""Put the cards of several models into one file."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.models.card import load_card, save_cards


def main() -> None:
    """Parse the command line and collect the cards, by model id."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", required=True, type=Path, nargs="+", help="<model>.json each")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    save_cards({path.stem: load_card(path) for path in args.cards}, args.out)


if __name__ == "__main__":
    errors.run(main)
