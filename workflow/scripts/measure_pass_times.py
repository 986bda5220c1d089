"""Time the passes of one model by themselves, alone on the machine."""

import json
from pathlib import Path

from specmoe import errors
from specmoe.config.parse import parse
from specmoe.config.timed_passes import TimedPasses
from specmoe.engine.job import alone_on_its_host, engine_job, job_of, provenance
from specmoe.files import replace_text
from specmoe.measure import pass_times


def main() -> None:
    """Parse the command line, time the passes, write their record."""
    parser = engine_job(__doc__)
    parser.add_argument("--passes", required=True, help="which passes, as JSON")
    parser.add_argument("--program", required=True, type=Path, help="pass_bench")
    parser.add_argument("--repeat", required=True, type=int)
    parser.add_argument("--target-card", required=True, type=Path, help="the model's card")
    args = parser.parse_args()
    passes = parse(TimedPasses, args.passes)
    made_by = provenance(args.engine, args.target_card, None)
    digest = made_by["target_sha256"]
    with alone_on_its_host(args, passes.environment):
        record = pass_times.measure(passes, job_of(args), args.program)
    record |= {"repeat": args.repeat, "engine": made_by["engine"], "model_sha256": digest}
    replace_text(args.out, json.dumps(record) + "\n")


if __name__ == "__main__":
    errors.run(main)
