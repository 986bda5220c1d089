"""Decode one prompt with drafts and without, and record every round."""

from pathlib import Path

from specmoe import errors
from specmoe.config.parse import parse
from specmoe.config.trace import Demonstration
from specmoe.engine.job import alone_on_its_host, engine_job, job_of, provenance
from specmoe.engine.machine_id import host_id
from specmoe.files import replace_text
from specmoe.measure.trace import record
from specmoe.measure.trace_record import Provenance


def main() -> None:
    """Parse the command line, decode, write the record."""
    parser = engine_job(__doc__)
    parser.add_argument("--demonstration", required=True, help="what to decode, as JSON")
    parser.add_argument("--target-card", required=True, type=Path, help="the target's card")
    parser.add_argument("--draft", type=Path, help="the file that the methods load, if any")
    parser.add_argument("--draft-card", type=Path, help="its card")
    parser.add_argument("--plain-log", required=True, type=Path, help="of the server without draft")
    args = parser.parse_args()
    made_by = provenance(args.engine, args.target_card, args.draft_card)
    demonstration = parse(Demonstration, args.demonstration)
    with alone_on_its_host(args, demonstration.block.environment):
        recording = record(
            demonstration,
            job_of(args, args.draft),
            args.plain_log,
            Provenance(host=host_id(), **made_by),
        )
    replace_text(args.out, recording.to_json())


if __name__ == "__main__":
    errors.run(main)
