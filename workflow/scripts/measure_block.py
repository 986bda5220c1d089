"""Measure one block by its protocol, alone on the machine."""

import json
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from specmoe import errors, paired, published_protocol
from specmoe.block import Block, Protocol
from specmoe.engine_job import alone_on_its_host, engine_job


def main() -> None:
    """Parse the command line, measure the block, write its record."""
    parser = engine_job(__doc__)
    parser.add_argument("--block", required=True, help="the block, as JSON")
    parser.add_argument("--target-card", required=True, type=Path, help="its card")
    parser.add_argument("--draft", type=Path, help="GGUF")
    parser.add_argument("--draft-card", type=Path, help="its card")
    args = parser.parse_args()
    say = partial(print, flush=True)
    engine = json.loads(args.engine.read_text())
    block = Block.from_json(args.block)
    with alone_on_its_host(args, block.environment, say):
        record = _measure(block, args, say)
    record["provenance"] = {
        "engine": engine["id"],
        "engine_commit": engine["commit"],
        "backend": engine["backend"],
        "target_sha256": _digest(args.target_card),
        "draft_sha256": _digest(args.draft_card) if args.draft_card else None,
    }
    args.out.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


def _measure(block: Block, args: Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    binaries = args.engine.parent / "bin"
    if block.protocol == Protocol.PUBLISHED:
        return published_protocol.measure(
            block,
            root=args.root,
            binaries=binaries,
            target=args.target,
            draft=args.draft,
            log=args.server_log,
            run_limit_s=args.run_limit_s,
            say=say,
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
        say=say,
    )


def _digest(card: Path) -> str:
    digest: str = json.loads(card.read_text())["sha256"]
    return digest


if __name__ == "__main__":
    errors.run(main)
