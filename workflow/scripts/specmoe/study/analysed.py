"""The whole analysis of a campaign, with other campaigns beside it and the study's claims."""

from pathlib import Path

from specmoe.analysis.build import analyse as analyse_runs
from specmoe.analysis.build import required_times
from specmoe.analysis.compared_settings import compared_campaigns, compared_settings
from specmoe.analysis.registry import Analysis
from specmoe.audit.report import Audit
from specmoe.files import read_record
from specmoe.models.info import load_infos
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.other_tables import read_agreement, read_pass_times
from specmoe.runs.schema import read_runs
from specmoe.study.headline import CLAIMS
from specmoe.study.judge import judge_claims
from specmoe.study.printed_numbers import compare, compare_printed, read_reported


def analyse(
    campaign: LoadedCampaign, audit: Path, out: Path, compare_with: tuple[Path, ...] = ()
) -> None:
    """Write every table of a campaign's analysis to a folder.

    `audit` is the folder of its audit; `compare_with` are analyses of other campaigns.
    """
    config, data = campaign.config, campaign.data
    runs = read_runs(data / "runs.parquet")
    own = analyse_runs(
        runs,
        config,
        load_infos(data / "models.json"),
        read_record(data / "machine.json"),
        Audit.read(audit),
        read_pass_times(*campaign.pass_times),
        read_agreement(*campaign.agreement),
        read_record(campaign.stages[-1])["settings"] if campaign.stages else [],
    )
    others = [Analysis.read(folder) for folder in compare_with]
    campaigns = [own, *others]
    tables = {
        "required_time": required_times(campaigns),
        "compared_settings": compared_settings(campaigns),
        "compared_campaigns": compared_campaigns(campaigns),
    }
    reported = read_reported(campaign.root / "resources/reported")
    if config.campaign.source == "study_rows":
        tables["reported"] = compare(reported, own)
    if own.campaign["is_study"].iloc[0]:
        tables["claims"] = judge_claims(CLAIMS, own)
        tables["comparison"] = compare_printed(reported, own, others)
    Analysis(own.tables, **tables).write(out)
