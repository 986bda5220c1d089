"""Turn the records of blocks into a table of runs."""

import argparse
from pathlib import Path

import pyarrow.parquet as pq

from specmoe import errors
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import Hosts, read_config
from specmoe.config.shortlist import alone_blocks, contenders
from specmoe.runs.collect import collect_records, refuse_mixed_hosts
from specmoe.runs.described import Described
from specmoe.runs.expected import refuse_other_runs


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--records", required=True, type=Path, help="folder of all blocks' records")
    parser.add_argument("--again", required=True, type=Path, help="folder of second records")
    parser.add_argument("--engines", required=True, type=Path, nargs="+", help="engine.json each")
    parser.add_argument("--cards", required=True, type=Path, nargs="+", help="<model>.json each")
    parser.add_argument("--suite", help="the table is that of this suite alone")
    parser.add_argument("--alone", action="store_true", help="the table is what a shortlist needs")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    config = read_config(args.config)
    described = Described.read(args.engines, args.cards, None)
    # Listed here, because a command line holds the names of some ten thousand records only.
    blocks = blocks_in_order(config, gpu=described.gpu)
    if args.alone:
        blocks = alone_blocks(config, contenders(config, blocks))
    if args.suite:
        blocks = [block for block in blocks if block.suite == args.suite]
    records = {args.records / f"{block.block}.json": block for block in blocks}
    twice = {record: args.again / record.relative_to(args.records) for record in records}
    again = {record: second for record, second in twice.items() if second.exists()}
    rows, table = collect_records(records, config.campaign.name, again)
    if config.campaign.hosts == Hosts.ONE:
        refuse_mixed_hosts(rows)
    remedy = "delete their blocks' records and run snakemake again"
    refuse_other_runs(rows, config, described, blocks, remedy)
    pq.write_table(table, args.out)


if __name__ == "__main__":
    errors.run(main)
