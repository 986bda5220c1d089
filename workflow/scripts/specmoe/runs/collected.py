"""Records of blocks collected into a table of runs."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from specmoe.config.schema import Hosts
from specmoe.errors import MeasurementError
from specmoe.files import named_if_damaged, read_record
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.gate import Gate
from specmoe.records import Request, digest_of, first_changes, is_known, load
from specmoe.runs.collect import RunRow, refuse_mixed_hosts, rows_of_record
from specmoe.runs.schema import check_rows

_ASKED = b"specmoe_asked"  # in a table's metadata: what each block was asked, as digests


def collect_runs(campaign: LoadedCampaign, suite: str | None, out: Path) -> None:
    """Write the runs of a campaign's records, or of one suite's.

    Raises DamagedFileError and MeasurementError for records that are not what is asked for.
    """
    gate = Gate(campaign)
    by_block: dict[str, list[RunRow]] = {}
    asked: dict[str, str] = {}
    for name, block in campaign.blocks.items():
        if suite in (None, block.suite):
            request, record = measured_as_asked(gate, f"blocks/{name}", gate.block(name))
            with named_if_damaged(gate.records.link(f"blocks/{name}")):
                by_block[name] = rows_of_record(record, block, _made_by(campaign, name, request))
            asked[name] = digest_of(request)
    rows = [row for own in by_block.values() for row in own]
    if campaign.config.campaign.hosts == Hosts.ONE:
        refuse_mixed_hosts(rows)
    try:
        table = check_rows(rows)
    except ValueError:
        # A check takes as long for the rows of one record as for all.
        for name, own in by_block.items():
            with named_if_damaged(gate.records.link(f"blocks/{name}")):
                check_rows(own)
        raise
    metadata = {**table.schema.metadata, _ASKED: json.dumps(asked)}
    pq.write_table(table.replace_schema_metadata(metadata), out)


def measured_as_asked(gate: Gate, name: str, asked: Request) -> tuple[Request, dict[str, Any]]:
    """Return what a job was asked and what it measured, if that is what is asked for now.

    Raises MeasurementError if it is something else.
    """
    file = gate.records.link(name)
    found, measured = load(file)
    if changed := first_changes(found, asked):
        raise MeasurementError(
            f"{file} was measured with another configuration ({changed}); run snakemake again,"
            " which measures what is asked for now"
        )
    return found, measured


def refuse_other_table(campaign: LoadedCampaign, runs: Path) -> None:
    """Raise MeasurementError if a table of runs is of other blocks than those that are asked for.

    Snakemake may have been told to leave it as it is.
    """
    metadata = pq.read_schema(runs).metadata or {}
    collected = json.loads(metadata.get(_ASKED, b"{}"))
    gate = Gate(campaign)
    for name in campaign.blocks:
        request = gate.block(name)
        if is_known(request) and collected.get(name) != digest_of(request):
            raise MeasurementError(
                f"{runs} has other runs of block {name} than are asked for now; run"
                " `snakemake runs` without options that keep old files"
            )


def _made_by(campaign: LoadedCampaign, block: str, request: Request) -> RunRow:
    """Return the columns of a row that name the campaign, its engine and its models."""
    description = campaign.engine_file(campaign.engine_of_block(block))
    with named_if_damaged(description):
        engine = read_record(description)
        return {
            "campaign": campaign.config.campaign.name,
            "engine": engine["id"],
            "engine_commit": engine["commit"],
            "backend": engine["backend"],
            "target_sha256": request["target_sha256"],
            "drafts_sha256": request["drafts_sha256"],
        }
