"""The block of a record."""

from pathlib import Path

from specmoe.config.block import Block
from specmoe.config.parse import parse
from specmoe.files import named_if_damaged, read_record


def recorded_block(records: Path, name: str) -> Block:
    """Return the block that a record is of, from the folder of all records."""
    file = records / f"{name}.json"
    with named_if_damaged(file):
        return parse(Block, read_record(file)["block"])
