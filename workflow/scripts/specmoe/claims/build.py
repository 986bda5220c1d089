"""The whole analysis of a campaign, with other campaigns beside it and the study's claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from specmoe.analysis.build import analyse, by_setting, required_times
from specmoe.analysis.concurrency import one_by_one
from specmoe.analysis.registry import Analysis
from specmoe.analysis.side_by_side import compared_campaigns, side_by_side
from specmoe.analysis.summaries import with_speedups
from specmoe.audit.tables import Audit
from specmoe.claims.judge import Claim, judge_claims, read_claims
from specmoe.claims.method_notes import method_notes
from specmoe.claims.printed_numbers import (
    Stated,
    compare,
    compare_printed,
    read_reported,
    read_stated,
)
from specmoe.config.schema import Config
from specmoe.models.card import ModelCard
from specmoe.runs.disturbed import undisturbed


@dataclass(frozen=True)
class PublishedStudy:
    """What the published study prints and claims, and how long its text of prompts is."""

    reported: pd.DataFrame  # see `printed_numbers.read_reported`
    stated: Stated
    claims: Mapping[str, Claim]
    passage_words: int

    @classmethod
    def read(cls, reported: Path, claims: Path, passage: Path) -> Self:
        """Read the folder of printed numbers, the file of claims and the study's text."""
        return cls(
            read_reported(reported),
            read_stated(reported),
            read_claims(claims),
            len(passage.read_text(encoding="utf-8").split()),
        )


def build_analysis(
    runs: pd.DataFrame,
    config: Config,
    cards: Mapping[str, ModelCard],
    host: Mapping[str, Any],
    audit: Audit,
    pass_times: pd.DataFrame,
    study: PublishedStudy,
    others: Sequence[Analysis],
    agreement: pd.DataFrame | None = None,
) -> Analysis:
    """Return the analysis of a campaign with all of its tables.

    `runs` is `schema.read_runs`'s frame, `cards` are the models' by id, `host` is the machine's
    description, `audit` the audit of `runs`, `pass_times` the table of `runs.pass_times`,
    `others` the campaigns to compare with, `agreement` the table of `runs.agreement`, if any.
    """
    compared, cards = with_speedups(undisturbed(runs)), by_setting(cards, runs)
    own = analyse(runs, compared, config, cards, host, audit, pass_times, agreement)
    campaigns = [own, *others]
    tables = {
        "required_time": required_times(campaigns),
        "side_by_side": side_by_side(campaigns),
        "compared_campaigns": compared_campaigns(campaigns),
    }
    of_its_rows = config.campaign.source == "published"
    if of_its_rows:
        tables["reported"] = compare(study.reported, own)
    if own.of_study:
        tables["method_notes"] = method_notes(
            one_by_one(runs),
            one_by_one(compared),
            own,
            cards,
            study.passage_words,
            study.stated if of_its_rows else None,
        )
        tables["claims"] = judge_claims(study.claims, own)
        tables["comparison"] = compare_printed(study.reported, own, others)
    elif not own.twins.empty:
        of_twins = {name: claim for name, claim in study.claims.items() if claim.twins}
        tables["claims"] = judge_claims(of_twins, own)
    return Analysis(own.tables, **tables)
