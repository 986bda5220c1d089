"""The whole analysis of a campaign, with other campaigns beside it and the study's claims."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from specmoe.analysis.build import analyse, by_setting, required_times
from specmoe.analysis.registry import Analysis
from specmoe.analysis.side_by_side import compared_campaigns, side_by_side
from specmoe.analysis.summaries import with_speedups
from specmoe.audit.tables import Audit
from specmoe.claims.headline import CLAIMS
from specmoe.claims.judge import judge_claims
from specmoe.claims.printed_numbers import compare, compare_printed
from specmoe.config.schema import Config
from specmoe.models.card import ModelCard
from specmoe.runs.disturbed import undisturbed


def build_analysis(
    runs: pd.DataFrame,
    config: Config,
    cards: Mapping[str, ModelCard],
    host: Mapping[str, Any],
    audit: Audit,
    pass_times: pd.DataFrame,
    reported: pd.DataFrame,
    others: Sequence[Analysis],
    agreement: pd.DataFrame | None = None,
) -> Analysis:
    """Return the analysis of a campaign with all of its tables.

    `runs` is `schema.read_runs`'s frame, `cards` are the models' by id, `host` is the machine's
    description, `audit` the audit of `runs`, `pass_times` the table of `runs.pass_times`,
    `reported` the study's printed numbers, `others` the campaigns to compare with, `agreement` the
    table of `runs.agreement`, if any.
    """
    compared, cards = with_speedups(undisturbed(runs)), by_setting(cards, runs)
    own = analyse(runs, compared, config, cards, host, audit, pass_times, agreement)
    campaigns = [own, *others]
    tables = {
        "required_time": required_times(campaigns),
        "side_by_side": side_by_side(campaigns),
        "compared_campaigns": compared_campaigns(campaigns),
    }
    if config.campaign.source == "published":
        tables["reported"] = compare(reported, own)
    if own.of_study:
        tables["claims"] = judge_claims(CLAIMS, own)
        tables["comparison"] = compare_printed(reported, own, others)
    elif not own.twins.empty:
        of_twins = {name: claim for name, claim in CLAIMS.items() if claim.twins}
        tables["claims"] = judge_claims(of_twins, own)
    return Analysis(own.tables, **tables)
