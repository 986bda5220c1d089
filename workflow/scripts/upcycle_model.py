"""Make an MoE of equal experts from a dense model."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.models import UpcycleModel
from specmoe.models.upcycle import upcycle


def main() -> None:
    """Parse the command line and write the MoE."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="the model's entry in the config, as JSON")
    parser.add_argument("--source", required=True, type=Path, help="GGUF of the dense model")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    upcycle(args.source, UpcycleModel.model_validate_json(args.entry), args.out)


if __name__ == "__main__":
    errors.run(main)
