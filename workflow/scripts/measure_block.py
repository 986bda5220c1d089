"""Measure one block by its protocol, alone on the machine.

It reads the block as JSON from its standard input.
"""

import sys
from pathlib import Path

from specmoe import errors
from specmoe.commentary import Commentary
from specmoe.config.block import Block
from specmoe.config.gate import Gate
from specmoe.config.parse import parse
from specmoe.engine.job import engine_job
from specmoe.measure.block_job import measure_block, summary
from specmoe.plan.progress import Running, describe_progress


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

    def left(taken_s: float, in_all_s: float) -> str:
        running = Running(block.block, taken_s, in_all_s)
        return describe_progress(args.plan, args.records, running)

    # Without retries nothing is measured again, see `measure_again.py`.
    last = not Gate.model_validate(block.gate).retries
    commentary = Commentary(block.block, block.runs, left, plan=args.plan, last_chance=last)
    record = measure_block(block, args, commentary)
    progress = describe_progress(args.plan, args.records)
    print(
        f"{progress}: {block.block}: {summary(record)}{commentary.end(record['runs'])}", flush=True
    )


if __name__ == "__main__":
    errors.run(main)
