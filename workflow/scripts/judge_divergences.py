"""Ask the baseline of one target about every run whose tokens differ from its own."""

import json
from pathlib import Path

from specmoe import errors
from specmoe.engine.job import alone_on_its_host, engine_job, job_of
from specmoe.files import read_record
from specmoe.measure.block_job import recorded_block
from specmoe.measure.divergence import baseline_blocks, find_divergences, judge_all
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line, judge the divergences of the target, write them down."""
    parser = engine_job(__doc__)
    parser.add_argument("--runs", required=True, type=Path, help="runs.parquet")
    parser.add_argument("--target-id", required=True, help="the target's id in the config")
    parser.add_argument("--records", required=True, type=Path, help="folder of all blocks' records")
    args = parser.parse_args()
    engine = read_record(args.engine)
    rows = read_runs(args.runs).to_dict("records")
    divergences = find_divergences(rows, args.target_id)
    # All blocks have the same environment, so one is enough where nothing diverges.
    named = {divergence.baseline_block for divergence in divergences}
    named = named or set(baseline_blocks(rows, args.target_id)[:1])
    blocks = {name: recorded_block(args.records, name) for name in sorted(named)}
    environment = {
        name: value for block in blocks.values() for name, value in block.environment.items()
    }
    with alone_on_its_host(args, environment):
        judged = judge_all(divergences, blocks, job_of(args))
    facts = {"target": args.target_id, "engine": engine["id"], "engine_commit": engine["commit"]}
    args.out.write_text(json.dumps(facts | judged, indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
