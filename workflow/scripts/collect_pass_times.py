"""Turn the records of timed passes into a table."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.files import named_if_damaged, read_record
from specmoe.runs.described import Described
from specmoe.runs.pass_times import record_files, rows_of_record, write_pass_times


@script
def main(config: Path, engine: Path, records: Path, out: Path) -> None:
    gpu = Described.read([engine], [], None).gpu
    rows = []
    config = read_config(config)
    for record, asked in record_files(records, config, gpu=gpu).items():
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record), asked)
    write_pass_times(rows, out)
