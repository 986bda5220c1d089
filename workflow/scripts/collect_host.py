"""Collect the descriptions of a campaign's machine into one."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.files import read_record
from specmoe.plan.hardware import collect


def main() -> None:
    """Parse the command line and collect the descriptions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", required=True, type=Path, nargs="+", help="r<repeat>.json each")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    facts = collect([read_record(host) for host in args.hosts])
    args.out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
