"""The job of measuring one block: its files and machine checked, its record written."""

import json
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, Protocol
from specmoe.config.parse import parse
from specmoe.engine.job import (
    alone_on_its_host,
    job_of,
    log_of_job,
    provenance,
    refuse_without_template,
)
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.measure import paired, study_commands

PROTOCOLS = {Protocol.PAIRED: paired, Protocol.PUBLISHED: study_commands}


def measure_block(block: Block, args: Namespace) -> dict[str, Any]:
    """Measure a block by its protocol, alone on the machine, and write and return its record.

    `args` has what `engine_job` and the rule `measure_block` give.
    """
    made_by = provenance(args.engine, args.target_card, args.draft_card)
    if block.sends_chats:
        refuse_without_template(args.target_card, block.target)
    with log_of_job(args.log), alone_on_its_host(args, block.environment):
        began = time.perf_counter()
        record: dict[str, Any] = PROTOCOLS[block.protocol].measure(block, job_of(args, args.draft))
        record["elapsed_s"] = time.perf_counter() - began
    record["provenance"] = made_by
    replace_text(args.out, json.dumps(record, ensure_ascii=False) + "\n")
    return record


def summary(record: Mapping[str, Any]) -> str:
    """Return the rate of each side of a measured block, as text."""
    text: str = PROTOCOLS[record["protocol"]].summary(record["runs"])
    return text


def recorded_block(records: Path, name: str) -> Block:
    """Return the block that a record is of, from the folder of all records."""
    file = records / f"{name}.json"
    with named_if_damaged(file):
        return parse(Block, read_record(file)["block"])
