"""Put the cards of several models into one file."""

import argparse
import json
from pathlib import Path

from specmoe import errors


def main() -> None:
    """Parse the command line and collect the cards, by model id."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", required=True, type=Path, nargs="+", help="<model>.json each")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    cards = {card.stem: json.loads(card.read_text()) for card in args.cards}
    args.out.write_text(json.dumps(cards, indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
