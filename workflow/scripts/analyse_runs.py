"""Compute every table of the analysis from the runs of a campaign."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd

from specmoe import errors
from specmoe.analysis.advice import advise
from specmoe.analysis.build import Analysis, analyse, required_times, usual_runs
from specmoe.analysis.side_by_side import compared_campaigns, side_by_side
from specmoe.audit.checks import count_marked
from specmoe.claims.judge import judge_claims, read_claims
from specmoe.claims.method_notes import method_notes
from specmoe.claims.printed_numbers import compare, compare_printed, read_reported, read_stated
from specmoe.config.schema import Config
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--models", required=True, type=Path, help="their cards, models.json")
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--audit", required=True, type=Path, help="folder of the findings")
    parser.add_argument("--reported", required=True, type=Path, help="what the study prints")
    parser.add_argument("--passage", required=True, type=Path, help="the study's own, of words")
    parser.add_argument("--compare-with", type=Path, nargs="*", default=[], help="other analyses")
    parser.add_argument("--claims", required=True, type=Path, help="what the study claims")
    parser.add_argument("--out", required=True, type=Path, help="folder of the tables")
    args = parser.parse_args()
    config = Config.model_validate_json(args.config.read_text())
    cards, host = (json.loads(path.read_text()) for path in (args.models, args.host))
    runs, reported = read_runs(args.runs), read_reported(args.reported)
    own_rows = config.campaign.source == "published"
    own_times = pd.read_parquet(args.audit / "required_time.parquet")
    audit = pd.read_parquet(args.audit / "audit.parquet")
    advice = advise(usual_runs(runs, config), config, cards, audit)
    analysis = replace(
        analyse(runs, config, cards, host),
        advice=advice.targets,
        advice_settings=advice.settings,
        audit=pd.read_parquet(args.audit / "summary.parquet"),
        marked=count_marked(audit),
        required_time=own_times.assign(campaign=config.campaign.name),
    )
    if own_rows:
        analysis = replace(analysis, reported=compare(reported, analysis))
    others = [Analysis.read(folder) for folder in args.compare_with]
    analysis = replace(
        analysis,
        required_time=required_times([analysis, *others]),
        side_by_side=side_by_side([analysis, *others]),
        compared_campaigns=compared_campaigns([analysis, *others]),
    )
    if analysis.of_study:
        analysis = replace(
            analysis,
            method_notes=method_notes(
                runs,
                analysis.baselines,
                cards,
                {model: config.label(model) for model in cards},
                passage_words=len(args.passage.read_text(encoding="utf-8").split()),
                stated=read_stated(args.reported) if own_rows else None,
            ),
            claims=judge_claims(read_claims(args.claims), analysis),
            comparison=compare_printed(reported, analysis, others),
        )
    analysis.write(args.out)


if __name__ == "__main__":
    errors.run(main)
