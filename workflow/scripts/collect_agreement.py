"""Turn the records of what drafts would have proposed into a table."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.files import named_if_damaged, read_record
from specmoe.runs.agreement import rows_of_record, write_agreement


@script
def main(records: tuple[Path, ...], out: Path) -> None:
    rows = []
    for record in records:
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record))
    write_agreement(rows, out)
