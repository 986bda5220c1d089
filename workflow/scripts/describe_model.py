"""Read a model file back and write down what it is."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from specmoe import errors
from specmoe.gguf_file import read_card


def main() -> None:
    """Parse the command line and write the model's card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    args.out.write_text(json.dumps(asdict(read_card(args.model)), indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
