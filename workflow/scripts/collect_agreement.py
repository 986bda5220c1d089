"""Turn the records of what drafts would have proposed into a table."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.files import named_if_damaged, read_record
from specmoe.runs.agreement import rows_of_record, write_agreement


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", required=True, type=Path, nargs="+", help="one a draft")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    rows = []
    for record in args.records:
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record))
    write_agreement(rows, args.out)


if __name__ == "__main__":
    errors.run(main)
