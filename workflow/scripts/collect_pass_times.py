"""Turn the records of timed passes into a table."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.files import named_if_damaged, read_record
from specmoe.runs.pass_times import rows_of_record, write_pass_times


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", required=True, type=Path, nargs="+")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    rows = []
    for record in args.records:
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record))
    write_pass_times(rows, args.out)


if __name__ == "__main__":
    errors.run(main)
