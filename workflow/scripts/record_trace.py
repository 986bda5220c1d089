"""Decode one prompt with a draft and without, and write down every round."""

import json
from functools import partial
from pathlib import Path

from specmoe import errors
from specmoe.config.trace import Demonstration
from specmoe.engine.job import alone_on_its_host, engine_job
from specmoe.engine.machine_id import host_id
from specmoe.files import replace_text
from specmoe.measure.trace import record
from specmoe.measure.trace_record import Provenance


def main() -> None:
    """Parse the command line, decode, write the record."""
    parser = engine_job(__doc__)
    parser.add_argument("--demonstration", required=True, help="what is decoded, as JSON")
    parser.add_argument("--target-card", required=True, type=Path, help="its card")
    parser.add_argument("--draft", required=True, type=Path, help="GGUF")
    parser.add_argument("--draft-card", required=True, type=Path, help="its card")
    parser.add_argument("--plain-log", required=True, type=Path, help="of the server without draft")
    args = parser.parse_args()
    say = partial(print, flush=True)
    engine, target, draft = (
        json.loads(file.read_text()) for file in (args.engine, args.target_card, args.draft_card)
    )
    demonstration = Demonstration.from_json(args.demonstration)
    with alone_on_its_host(args, demonstration.block.environment, say):
        recording = record(
            demonstration,
            root=args.root,
            binary=args.engine.parent / "bin" / "llama-server",
            target=args.target,
            draft=args.draft,
            logs=(args.server_log, args.plain_log),
            start_limit_s=args.start_limit_s,
            run_limit_s=args.run_limit_s,
            provenance=Provenance(
                engine=engine["id"],
                engine_commit=engine["commit"],
                backend=engine["backend"],
                host=host_id(),
                target_sha256=target["sha256"],
                draft_sha256=draft["sha256"],
            ),
            say=say,
        )
    replace_text(args.out, recording.to_json())


if __name__ == "__main__":
    errors.run(main)
