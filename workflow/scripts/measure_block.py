"""Measure one block by its protocol, alone on the machine."""

import json
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specmoe import errors
from specmoe.config.block import Block, Protocol
from specmoe.engine.job import alone_on_its_host, engine_job, log_of_job
from specmoe.files import replace_text
from specmoe.measure import paired, study_commands
from specmoe.plan.progress import describe_progress


def main() -> None:
    """Parse the command line, measure the block, write its record."""
    parser = engine_job(__doc__)
    parser.add_argument("--block", required=True, help="the block, as JSON")
    parser.add_argument("--target-card", required=True, type=Path, help="its card")
    parser.add_argument("--draft", type=Path, help="GGUF")
    parser.add_argument("--draft-card", type=Path, help="its card")
    parser.add_argument("--log", required=True, type=Path, help="a line for every run")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json of the campaign")
    parser.add_argument("--records", required=True, type=Path, help="folder of all blocks' records")
    args = parser.parse_args()
    engine = json.loads(args.engine.read_text())
    block = Block.from_json(args.block)
    with log_of_job(args.log) as note, alone_on_its_host(args, block.environment, _say):
        began = time.perf_counter()
        record = _measure(block, args, note)
        record["elapsed_s"] = time.perf_counter() - began
    record["provenance"] = {
        "engine": engine["id"],
        "engine_commit": engine["commit"],
        "backend": engine["backend"],
        "target_sha256": _digest(args.target_card),
        "draft_sha256": _digest(args.draft_card) if args.draft_card else None,
    }
    replace_text(args.out, json.dumps(record, ensure_ascii=False) + "\n")
    _say(f"{describe_progress(args.plan, args.records)}: {block.block}: {_summary(block, record)}")


def _say(line: str) -> None:
    print(line, flush=True)


def _summary(block: Block, record: dict[str, Any]) -> str:
    """Return a block's rate and acceptance in words."""
    protocol = study_commands if block.protocol == Protocol.PUBLISHED else paired
    return protocol.summary(record["runs"])


def _measure(block: Block, args: Namespace, note: Callable[[str], None]) -> dict[str, Any]:
    binaries = args.engine.parent / "bin"
    if block.protocol == Protocol.PUBLISHED:
        return study_commands.measure(
            block,
            root=args.root,
            binaries=binaries,
            target=args.target,
            draft=args.draft,
            log=args.server_log,
            run_limit_s=args.run_limit_s,
            say=note,
        )
    return paired.measure(
        block,
        root=args.root,
        binary=binaries / "llama-server",
        target=args.target,
        draft=args.draft,
        log=args.server_log,
        start_limit_s=args.start_limit_s,
        run_limit_s=args.run_limit_s,
        say=note,
    )


def _digest(card: Path) -> str:
    digest: str = json.loads(card.read_text())["sha256"]
    return digest


if __name__ == "__main__":
    errors.run(main)
