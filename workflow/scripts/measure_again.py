"""Measure once more the blocks of a suite in which a run was disturbed at every attempt.

A second record is kept beside the first one and names it, so an interrupted job goes on.
"""

import argparse
import json
import shutil
from pathlib import Path

from specmoe import errors
from specmoe.commentary import Commentary
from specmoe.config.block import Block
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import read_config
from specmoe.engine.job import engine_jobs
from specmoe.files import named_if_damaged, read_record, replace_text, sha256_of
from specmoe.measure.again import block_to_measure_again, second_of
from specmoe.measure.block_job import measure_block, summary
from specmoe.plan.progress import duration


def main() -> None:
    """Parse the command line, measure what was disturbed, list the blocks with a second record."""
    parser = engine_jobs(__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--models", required=True, type=Path, nargs="*", help="of the suite")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json of the campaign")
    parser.add_argument("--records", required=True, type=Path, help="folder of all blocks' records")
    parser.add_argument("--logs", required=True, type=Path, help="folder of the blocks' logs")
    parser.add_argument("--machines", type=Path, help="folder that says where blocks were measured")
    args = parser.parse_args()
    blocks = blocks_in_order(read_config(args.config), gpu=False)  # the same ids with a GPU
    names = [block.block for block in blocks if block.suite == args.suite]
    waiting = {name: block for name in names if (block := _to_measure(name, args))}
    if waiting:
        print(
            f"{len(waiting)} of {len(names)} blocks of suite {args.suite} have runs that were"
            " disturbed at every attempt; these are measured once more",
            flush=True,
        )
    for number, (name, block) in enumerate(waiting.items(), 1):
        if args.machines:
            machine = second_of(args.machines, name)
            machine.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(args.host, machine)
        _measure(block, args, f"second measurement {number} of {len(waiting)}")
    there = [name for name in names if second_of(args.out.parent, name).exists()]
    replace_text(args.out, json.dumps({"blocks": there}) + "\n")


def _to_measure(name: str, args: argparse.Namespace) -> Block | None:
    """Return a block to measure again; None if it is not to be, or has a second record.

    The second record of a first one that was measured anew is removed.
    """
    first, second = args.records / f"{name}.json", second_of(args.out.parent, name)
    if second.exists():
        with named_if_damaged(second):
            if read_record(second)["first"] == sha256_of(first):
                return None
        second.unlink()
        if args.machines:
            second_of(args.machines, name).unlink(missing_ok=True)
    with named_if_damaged(first):
        return block_to_measure_again(read_record(first))


def _measure(block: Block, args: argparse.Namespace, which: str) -> None:
    """Measure a block a second time, and say so."""
    name = block.block

    def left(taken_s: float, in_all_s: float) -> str:
        return f"{which}, {duration(in_all_s - taken_s)} left"

    commentary = Commentary(name, block.runs, left, plan=args.plan, last_chance=True)
    first = sha256_of(args.records / f"{name}.json")
    record = measure_block(block, _args_of(block, args), commentary, {"first": first})
    print(f"{which}: {name}: {summary(record)}{commentary.end(record['runs'])}", flush=True)


def _args_of(block: Block, args: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments of `measure_block.py` for a block."""
    files: dict[str, Path] = {file.stem: file for file in args.models}
    draft = files[block.draft_model] if block.draft_model else None
    log = args.logs / f"{block.block}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return argparse.Namespace(
        **vars(args)
        | {
            "target": files[block.target],
            "target_card": files[block.target].with_suffix(".json"),
            "draft": draft,
            "draft_card": draft.with_suffix(".json") if draft else None,
            "log": log,
            "server_log": log.with_suffix(".server.log"),
            "out": second_of(args.out.parent, block.block),
        }
    )


if __name__ == "__main__":
    errors.run(main)
