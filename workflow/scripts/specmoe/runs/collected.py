"""Records of blocks collected into a table of runs."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import Config, Hosts
from specmoe.runs.collect import collect_records, refuse_mixed_hosts
from specmoe.runs.described import Described
from specmoe.runs.expected import refuse_other_runs


def collect_runs(
    config: Config,
    records: Path,
    engines: Iterable[Path],
    cards: Iterable[Path],
    out: Path,
    suite: str | None = None,
) -> None:
    """Write the runs of a campaign's records, or of one suite's, from the folder of all records.

    Raises DamagedFileError and MeasurementError for records that are not what is asked for.
    """
    described = Described.read(engines, cards, None)
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
