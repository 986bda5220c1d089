"""A campaign analysed, from its files to the tables of the analysis."""

from collections.abc import Iterable
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.audit.tables import Audit
from specmoe.claims.build import build_analysis
from specmoe.claims.printed_numbers import read_reported
from specmoe.files import read_record
from specmoe.models.card import load_cards
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.agreement import read_agreement
from specmoe.runs.pass_times import read_pass_times
from specmoe.runs.schema import read_runs


def analyse_campaign(
    campaign: LoadedCampaign, audit: Path, compare_with: Iterable[Path], out: Path
) -> None:
    """Write every table of a campaign's analysis to a folder.

    `audit` is the folder of its audit; `compare_with` are analyses of other campaigns.
    """
    data = campaign.data
    analysis = build_analysis(
        read_runs(data / "runs.parquet"),
        campaign.config,
        load_cards(data / "models.json"),
        read_record(data / "host.json"),
        Audit.read(audit),
        read_pass_times(*campaign.pass_times),
        read_reported(campaign.root / "resources/reported"),
        [Analysis.read(folder) for folder in compare_with],
        read_agreement(*campaign.agreement),
    )
    analysis.write(out)
