"""A campaign's runs audited: read, compared with what was asked for, checked, and written."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import pandas as pd

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs, count_power, summarise_audit
from specmoe.audit.evidence import Bandwidth, Evidence, Gap, gaps_of, gather_evidence
from specmoe.audit.reading import readings_of
from specmoe.audit.text import describe_audit
from specmoe.config.block import ASKED
from specmoe.config.matrix import left_out_blocks
from specmoe.errors import MeasurementError, SchemaError
from specmoe.files import named_if_damaged, read_record
from specmoe.models.card import load_cards, size_of_card
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.manifest import check_manifest
from specmoe.runs.other_tables import read_agreement, read_pass_times, seen_experts
from specmoe.runs.schema import asked_of, read_runs
from specmoe.words import counted

# Arrow's strings suit long columns; on tables as short as these they take more time.
pd.set_option("mode.string_storage", "python")


def table_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the Parquet file of each table in a folder; raises SchemaError for one that lacks."""
    files = {name: folder / f"{name}.parquet" for name in names}
    for file in files.values():
        if not file.is_file():
            raise SchemaError(f"{file} is not there; render that campaign again")
    return files


@dataclass(frozen=True, eq=False)
class Audit:
    """What the audit found: `audit_runs`, `summarise_audit`, `count_power`, `required_time`."""

    audit: pd.DataFrame
    summary: pd.DataFrame
    power: pd.DataFrame
    required_time: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write each table as `<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for table in fields(self):
            getattr(self, table.name).to_parquet(folder / f"{table.name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote; raises SchemaError for a folder that lacks a table."""
        files = table_files(folder, [table.name for table in fields(cls)])
        return cls(**{name: pd.read_parquet(file) for name, file in files.items()})

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Audit the runs of a campaign."""
        audit = audit_runs(evidence)
        summary, power = summarise_audit(audit), count_power(evidence)
        return cls(audit, summary, power, required_time(evidence))


def audit_campaign(campaign: LoadedCampaign, out: Path) -> None:
    """Write the audit of a campaign to a folder, and print it.

    A packed campaign is believed by its manifest.
    Raises DamagedFileError, SchemaError and MeasurementError for rows that are not the campaign's.
    """
    config, data = campaign.config, campaign.data
    if config.campaign.source == "cached":
        check_manifest(data)
    runs, models, host = data / "runs.parquet", data / "models.json", data / "host.json"
    times = read_pass_times(*campaign.pass_times)
    cards, seen = load_cards(models), seen_experts(times)
    sizes = {model: size_of_card(card, seen.get(model, ())) for model, card in cards.items()}
    with named_if_damaged(host):
        bandwidth = Bandwidth.of(read_record(host))
    gaps: dict[str, Gap] = {}
    for file in campaign.divergences:
        with named_if_damaged(file):
            gaps |= gaps_of(read_record(file))
    rows = read_runs(runs)
    if config.campaign.source != "published":
        _refuse_other_runs(campaign, rows)
    readings = readings_of(read_agreement(*campaign.agreement))
    evidence = gather_evidence(rows, sizes, bandwidth, config.audit, gaps, readings)
    found = Audit.of(evidence)
    found.write(out)
    text = describe_audit(found.audit, rows, found.power, left_out_blocks(config))
    (out / "audit.txt").write_text(text, encoding="utf-8")
    print(text, end="")


def _refuse_other_runs(campaign: LoadedCampaign, rows: pd.DataFrame) -> None:
    """Raise MeasurementError unless the rows are the runs of the campaign's blocks.

    An overlay may ask for more of a packed campaign than it has.
    """
    blocks = filter(None, map(campaign.asked, campaign.blocks))
    asked = {run for block in blocks for run in block.asked}
    found = {*asked_of(rows)}
    for fault, runs in {"lacks": asked - found, "has, unasked,": found - asked}.items():
        if runs:
            one = ", ".join(
                f"{name} {value}" for name, value in zip(ASKED, min(runs, key=str), strict=True)
            )
            raise MeasurementError(
                f"{campaign.data / 'runs.parquet'} {fault} {counted(len(runs), 'run')} of campaign"
                f" {campaign.config.campaign.name} ({one}): give the configuration with which"
                " it was packed, or measure it again"
            )
