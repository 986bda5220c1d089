"""Read the texts of a campaign's targets with a draft: what would it have proposed."""

import json
from dataclasses import replace
from pathlib import Path

from specmoe import errors
from specmoe.engine.job import alone_on_its_host, engine_jobs, job_of, provenance
from specmoe.files import replace_text
from specmoe.measure.agreement import read, texts_to_read
from specmoe.measure.block_job import recorded_block
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line, read the texts, write the draft's proposals."""
    parser = engine_jobs(__doc__)
    parser.add_argument("--runs", required=True, type=Path, help="runs.parquet")
    parser.add_argument("--draft-id", required=True, help="the draft's id in the config")
    parser.add_argument("--draft", required=True, type=Path, help="GGUF")
    parser.add_argument("--draft-card", required=True, type=Path)
    parser.add_argument("--targets", required=True, type=Path, nargs="+", help="GGUF each")
    parser.add_argument("--records", required=True, type=Path, help="folder of all blocks' records")
    parser.add_argument("--program", required=True, type=Path, help="read_agreement")
    parser.add_argument("--engine-log", required=True, type=Path)
    args = parser.parse_args()
    args.target, args.server_log = args.draft, args.engine_log
    made_by = provenance(args.engine, args.draft_card, None)
    digest = made_by["target_sha256"]
    jobs = {file.stem: replace(job_of(args), target=file) for file in args.targets}
    texts = texts_to_read(read_runs(args.runs).to_dict("records"), args.draft_id, jobs.keys())
    blocks = {text.block: recorded_block(args.records, text.block) for text in texts}
    environment = {
        name: value for block in blocks.values() for name, value in block.environment.items()
    }
    with alone_on_its_host(args, environment):
        record = read(texts, blocks, jobs, args.draft, args.program)
    facts = {"draft": args.draft_id, "engine": made_by["engine"], "draft_sha256": digest}
    replace_text(args.out, json.dumps(facts | record) + "\n")


if __name__ == "__main__":
    errors.run(main)
