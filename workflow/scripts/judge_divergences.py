"""Ask the baseline of one target about every run that left its tokens."""

import json
from functools import partial
from pathlib import Path

from specmoe import errors
from specmoe.config.block import Block
from specmoe.engine.job import alone_on_its_host, engine_job
from specmoe.measure.divergence import find_divergences, judge_all
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line, judge the divergences of the target, write them down."""
    parser = engine_job(__doc__)
    parser.add_argument("--runs", required=True, type=Path, help="runs.parquet")
    parser.add_argument("--target-id", required=True, help="the target's id in the config")
    parser.add_argument(
        "--records", required=True, nargs="+", type=Path, help="of the target's baseline blocks"
    )
    args = parser.parse_args()
    say = partial(print, flush=True)
    engine = json.loads(args.engine.read_text())
    rows = read_runs(args.runs).to_dict("records")
    blocks = dict(map(_block, args.records))
    environment = {name for block in blocks.values() for name in block.environment}
    with alone_on_its_host(args, environment, say):
        judged = judge_all(
            find_divergences(rows, args.target_id),
            blocks,
            root=args.root,
            binary=args.engine.parent / "bin" / "llama-server",
            target=args.target,
            log=args.server_log,
            start_limit_s=args.start_limit_s,
            run_limit_s=args.run_limit_s,
            say=say,
        )
    facts = {"target": args.target_id, "engine": engine["id"], "engine_commit": engine["commit"]}
    args.out.write_text(json.dumps(facts | judged, indent=1) + "\n")


def _block(record: Path) -> tuple[str, Block]:
    block = Block.from_json(json.dumps(json.loads(record.read_text())["block"]))
    return block.block, block


if __name__ == "__main__":
    errors.run(main)
