"""Ask the baseline of one target about every run that left its tokens."""

import argparse
import json
from functools import partial
from pathlib import Path

from specmoe import errors
from specmoe.block import Block
from specmoe.divergence import find_divergences, judge_all
from specmoe.guard import end_with
from specmoe.host import refuse_other_host
from specmoe.lock import alone
from specmoe.records import read_runs


def main() -> None:
    """Parse the command line, judge the divergences of the target, write them down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path, help="runs.parquet")
    parser.add_argument("--target-id", required=True, help="the target's id in the config")
    parser.add_argument("--target", required=True, type=Path, help="GGUF")
    parser.add_argument(
        "--records", required=True, nargs="+", type=Path, help="of the target's baseline blocks"
    )
    parser.add_argument("--root", required=True, type=Path, help="folder of the prompt files")
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--host", required=True, type=Path, help="host.json, if it is there")
    parser.add_argument("--start-limit-s", required=True, type=float)
    parser.add_argument("--run-limit-s", required=True, type=float)
    parser.add_argument("--workflow-pid", type=int, help="end when this process does")
    parser.add_argument("--server-log", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    say = partial(print, flush=True)
    if args.workflow_pid:
        end_with(args.workflow_pid)
    refuse_other_host(args.host)
    engine = json.loads(args.engine.read_text())
    rows = read_runs(args.runs).to_dict("records")
    with alone(say):
        judged = judge_all(
            find_divergences(rows, args.target_id),
            dict(map(_block, args.records)),
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
