"""The job of measuring one block: its files and machine checked, its record written."""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, Protocol
from specmoe.config.parse import parse
from specmoe.engine.job import alone_on_its_host, job_of, log_of_job, provenance
from specmoe.engine.workplace import Workplace
from specmoe.files import card_beside, named_if_damaged, read_record, replace_text
from specmoe.measure import paired, study_commands
from specmoe.models.card import load_card, require_template

PROTOCOLS = {Protocol.PAIRED: paired, Protocol.PUBLISHED: study_commands}


def measure_block(
    block: Block, workplace: Workplace, target: Path, draft: Path | None, log: Path, out: Path
) -> dict[str, Any]:
    """Measure a block by its protocol, alone on the machine, and write and return its record.

    `target` and `draft` are what its sides load; `log` receives a line for every run, and each
    side's server has a log beside it.
    """
    made_by = provenance(workplace.engine, target, draft)
    if block.sends_chats:
        require_template(load_card(card_beside(target)), target, block.suite)
    with log_of_job(log), alone_on_its_host(workplace, block.environment):
        began = time.perf_counter()
        job = job_of(workplace, target, log.with_suffix(".server.log"), draft)
        record: dict[str, Any] = PROTOCOLS[block.protocol].measure(block, job)
        record["elapsed_s"] = time.perf_counter() - began
    record["provenance"] = made_by
    replace_text(out, json.dumps(record, ensure_ascii=False) + "\n")
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


def recorded_blocks(records: Path, names: Iterable[str]) -> dict[str, Block]:
    """Return the blocks of some records by name."""
    return {name: recorded_block(records, name) for name in names}


def environment_of(blocks: Mapping[str, Block]) -> dict[str, str]:
    """Return the variables that blocks give the engine."""
    return {name: value for block in blocks.values() for name, value in block.environment.items()}
