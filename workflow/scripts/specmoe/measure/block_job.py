"""The job of measuring one block: its files and machine checked, its runs done."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, Protocol
from specmoe.engine.identity import Workplace
from specmoe.engine.job import alone_on_its_host, job_of, log_of_job
from specmoe.files import card_beside
from specmoe.measure import paired, study_commands
from specmoe.models.card import load_card, require_template

PROTOCOLS = {Protocol.PAIRED: paired, Protocol.PUBLISHED: study_commands}


def measure_block(
    block: Block, workplace: Workplace, target: Path, drafts: Mapping[str, Path], log: Path
) -> dict[str, Any]:
    """Measure a block by its protocol, alone on the machine, and return its record.

    `target` and `drafts`, by model, are what its sides load; `log` receives a line for every run,
    and each side's server has a log beside it.
    """
    if block.sends_chats:
        require_template(load_card(card_beside(target)), target, block.suite)
    with log_of_job(log), alone_on_its_host(workplace, block.environment):
        job = job_of(workplace, target, log.with_suffix(".server.log"), drafts)
        record: dict[str, Any] = PROTOCOLS[block.protocol].measure(block, job)
    return record


def summary(block: Block, record: Mapping[str, Any]) -> str:
    """Return the rate of each side of a measured block, as text."""
    text: str = PROTOCOLS[block.protocol].summary(record["runs"])
    return text
