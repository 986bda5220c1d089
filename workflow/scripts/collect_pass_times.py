"""Turn the records of timed passes into a table."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.files import read_record
from specmoe.runs.pass_times import pass_times, write_pass_times


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", required=True, type=Path, nargs="+")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    records = (read_record(record) for record in args.records)
    write_pass_times(pass_times(records), args.out)


if __name__ == "__main__":
    errors.run(main)
