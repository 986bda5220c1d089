"""The job of measuring one block: its files and machine checked, its record written."""

import json
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from specmoe.config.block import Block, Protocol
from specmoe.engine.job import (
    alone_on_its_host,
    job_of,
    log_of_job,
    provenance,
    refuse_without_template,
)
from specmoe.files import replace_text
from specmoe.measure import paired, study_commands
from specmoe.measure.file_state import unchanged

PROTOCOLS = {Protocol.PAIRED: paired, Protocol.PUBLISHED: study_commands}


def measure_block(
    block: Block,
    args: Namespace,
    commented: AbstractContextManager[object],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure a block by its protocol, alone on the machine, and write its record.

    `args` has what `engine_job` and the rule `measure_block` give. `commented` is open while the
    block is measured, and `more` goes into the record, which is returned.
    """
    made_by = provenance(args.engine, args.target_card, args.draft_card)
    if block.sends_chats:
        refuse_without_template(args.target_card, block.target)
    digests = {args.target: made_by["target_sha256"]}
    if args.draft:
        digests[args.draft] = made_by["draft_sha256"]
    with log_of_job(args.log), alone_on_its_host(args, block.environment), unchanged(digests):
        began = time.perf_counter()
        with commented:
            record: dict[str, Any] = PROTOCOLS[block.protocol].measure(
                block, job_of(args, args.draft)
            )
        record["elapsed_s"] = time.perf_counter() - began
    record |= {"provenance": made_by} | dict(more or {})
    replace_text(args.out, json.dumps(record, ensure_ascii=False) + "\n")
    return record


def summary(record: Mapping[str, Any]) -> str:
    """Return the rate of each side of a measured block, as text."""
    text: str = PROTOCOLS[record["protocol"]].summary(record["runs"])
    return text
