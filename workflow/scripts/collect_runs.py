"""Turn the records of blocks into a table of runs."""

from pathlib import Path

import pyarrow.parquet as pq

from specmoe.command_line import script
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import Hosts, read_config
from specmoe.runs.collect import collect_records, refuse_mixed_hosts
from specmoe.runs.described import Described
from specmoe.runs.expected import refuse_other_runs


@script
def main(
    config: Path,
    records: Path,
    engines: tuple[Path, ...],
    cards: tuple[Path, ...],
    out: Path,
    suite: str | None = None,
) -> None:
    config = read_config(config)
    described = Described.read(engines, cards, None)
    # Listed here, because a command line holds the names of some ten thousand records only.
    blocks = blocks_in_order(config, gpu=described.gpu)
    if suite:
        blocks = [block for block in blocks if block.suite == suite]
    files = {records / f"{block.block}.json": block for block in blocks}
    rows, table = collect_records(files, config.campaign.name)
    if config.campaign.hosts == Hosts.ONE:
        refuse_mixed_hosts(rows)
    remedy = "delete their blocks' records and run snakemake again"
    refuse_other_runs(rows, config, described, blocks, remedy)
    pq.write_table(table, out)
