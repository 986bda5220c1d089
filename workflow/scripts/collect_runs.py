"""Turn the records of blocks into a table of runs."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.schema import Config
from specmoe.files import read_record
from specmoe.runs.collect import refuse_mixed_hosts, rows_of_record
from specmoe.runs.expected import refuse_other_runs
from specmoe.runs.schema import write_runs


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--records", required=True, type=Path, nargs="+")
    parser.add_argument("--suite", help="the records are those of this suite alone")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    config = Config.model_validate_json(args.config.read_text())
    records = [read_record(record) for record in args.records]
    rows = [row for record in records for row in rows_of_record(record, config.campaign.name)]
    refuse_mixed_hosts(rows)
    suites = [args.suite] if args.suite else config.campaign.suites
    refuse_other_runs(rows, config, suites, "delete their blocks' records and run snakemake again")
    write_runs(rows, args.out)


if __name__ == "__main__":
    errors.run(main)
