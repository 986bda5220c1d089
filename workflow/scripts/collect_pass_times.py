"""Turn the records of timed passes into a table."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.schema import read_config
from specmoe.files import named_if_damaged, read_record
from specmoe.runs.described import Described
from specmoe.runs.pass_times import record_files, rows_of_record, write_pass_times


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--records", required=True, type=Path, help="folder of all their records")
    parser.add_argument("--first", action="store_true", help="of the first repeat alone")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    gpu = Described.read([args.engine], [], None).gpu
    rows = []
    config = read_config(args.config)
    for record, asked in record_files(args.records, config, gpu=gpu, first=args.first).items():
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record), asked)
    write_pass_times(rows, args.out)


if __name__ == "__main__":
    errors.run(main)
