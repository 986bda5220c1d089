"""Compute every table of the analysis from the runs of a campaign."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.analysis import analyse
from specmoe.config import Config
from specmoe.records import read_runs


def main() -> None:
    """Parse the command line and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--cards", required=True, type=Path, nargs="+", help="<model>.json each")
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--out", required=True, type=Path, help="folder of the tables")
    args = parser.parse_args()
    analyse(
        read_runs(args.runs),
        Config.model_validate_json(args.config.read_text()),
        {card.stem: json.loads(card.read_text()) for card in args.cards},
        json.loads(args.host.read_text()),
    ).write(args.out)


if __name__ == "__main__":
    errors.run(main)
