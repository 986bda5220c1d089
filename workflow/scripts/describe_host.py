"""Write down what machine this is."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.host import describe


def main() -> None:
    """Parse the command line and describe the machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    args.out.write_text(json.dumps(describe(), indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
