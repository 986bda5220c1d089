"""Decode one prompt with a target, and ask a draft model for the drafts of every round."""

from pathlib import Path

from specmoe import errors
from specmoe.config.parse import parse
from specmoe.config.trace import Demonstration
from specmoe.engine.job import alone_on_its_host, engine_job, job_of
from specmoe.files import replace_text
from specmoe.measure.trace import record


def main() -> None:
    """Parse the command line, decode, write the record."""
    parser = engine_job(__doc__)
    parser.add_argument("--demonstration", required=True, help="what to decode, as JSON")
    parser.add_argument("--draft", required=True, type=Path, help="the draft model")
    args = parser.parse_args()
    demonstration = parse(Demonstration, args.demonstration)
    with alone_on_its_host(args, demonstration.block.environment):
        recording = record(demonstration, job_of(args, args.draft))
    replace_text(args.out, recording.to_json())


if __name__ == "__main__":
    errors.run(main)
