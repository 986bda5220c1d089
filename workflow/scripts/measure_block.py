"""Measure one block by its protocol, alone on the machine.

It reads the block as JSON from its standard input.
"""

import sys
from pathlib import Path

from specmoe import errors
from specmoe.config.block import Block
from specmoe.config.parse import parse
from specmoe.engine.job import engine_job
from specmoe.measure.block_job import measure_block, summary
from specmoe.plan.progress import describe_progress


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
    block = parse(Block, sys.stdin.read())  # of a thousand prompts it fits no command line

    record = measure_block(block, args)
    progress = describe_progress(args.plan, args.records)
    print(f"{progress}: {block.block}: {summary(record)}", flush=True)


if __name__ == "__main__":
    errors.run(main)
