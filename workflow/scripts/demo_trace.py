"""Show round by round how one prompt was decoded with drafts."""

import argparse
import os
import sys
from pathlib import Path

from specmoe import errors
from specmoe.measure.trace_record import Recording
from specmoe.page.trace_text import describe


def main() -> None:
    """Parse the command line and print the record; in colour on a terminal, unless NO_COLOR."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", required=True, type=Path, help="trace.json")
    parser.add_argument("--log", required=True, type=Path, help="for the same text, uncoloured")
    args = parser.parse_args()
    recording = Recording.read(args.trace)
    args.log.write_text(describe(recording, colour=False), encoding="utf-8")
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(describe(recording, colour=colour), end="")


if __name__ == "__main__":
    errors.run(main)
