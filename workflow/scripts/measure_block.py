"""Measure one block by its protocol, alone on the machine.

It reads the block as JSON from its standard input.
"""

import json
import sys
import time
from pathlib import Path

from specmoe import errors
from specmoe.config.block import Block, Protocol
from specmoe.config.parse import parse
from specmoe.engine.job import (
    alone_on_its_host,
    engine_job,
    job_of,
    log_of_job,
    provenance,
    refuse_without_template,
)
from specmoe.files import replace_text
from specmoe.measure import paired, study_commands
from specmoe.measure.file_state import unchanged
from specmoe.plan.progress import describe_progress

PROTOCOLS = {Protocol.PAIRED: paired, Protocol.PUBLISHED: study_commands}


def main() -> None:
    """Parse the command line, measure the block, write its record."""
    parser = engine_job(__doc__)
    parser.add_argument("--target-card", required=True, type=Path, help="the target's card")
    parser.add_argument("--draft", type=Path, help="GGUF")
    parser.add_argument("--draft-card", type=Path, help="the draft's card")
    parser.add_argument("--log", required=True, type=Path, help="receives a line for every run")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json of the campaign")
    parser.add_argument("--records", required=True, type=Path, help="folder of all blocks' records")
    args = parser.parse_args()
    made_by = provenance(args.engine, args.target_card, args.draft_card)
    block = parse(Block, sys.stdin.read())  # of a thousand prompts it fits no command line
    if block.sends_chats:
        refuse_without_template(args.target_card, block.target)
    protocol = PROTOCOLS[block.protocol]
    digests = {args.target: made_by["target_sha256"]}
    if args.draft:
        digests[args.draft] = made_by["draft_sha256"]
    with log_of_job(args.log), alone_on_its_host(args, block.environment), unchanged(digests):
        began = time.perf_counter()
        record = protocol.measure(block, job_of(args, args.draft))
        record["elapsed_s"] = time.perf_counter() - began
    record["provenance"] = made_by
    replace_text(args.out, json.dumps(record, ensure_ascii=False) + "\n")
    progress = describe_progress(args.plan, args.records)
    print(f"{progress}: {block.block}: {protocol.summary(record['runs'])}", flush=True)


if __name__ == "__main__":
    errors.run(main)
