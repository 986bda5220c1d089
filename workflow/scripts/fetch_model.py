"""Download a model from the hub and link it into place."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config import HubModel
from specmoe.files import link
from specmoe.hub import fetch


def main() -> None:
    """Parse the command line and fetch the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="the model's entry in the config, as JSON")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    link(fetch(HubModel.model_validate_json(args.entry)), args.out)


if __name__ == "__main__":
    errors.run(main)
