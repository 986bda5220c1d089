"""Compute every table of the analysis from the runs of a campaign."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.analysis.registry import Analysis
from specmoe.audit.tables import Audit
from specmoe.claims.build import PublishedStudy, build_analysis
from specmoe.claims.taxonomy import Literature
from specmoe.config.schema import read_config
from specmoe.files import read_record
from specmoe.models.card import load_cards
from specmoe.runs.pass_times import read_pass_times
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--models", required=True, type=Path, help="their cards, models.json")
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--pass-times", type=Path, nargs="?", help="pass_times.parquet, if any")
    parser.add_argument("--audit", required=True, type=Path, help="folder of the findings")
    parser.add_argument("--reported", required=True, type=Path, help="what the study prints")
    parser.add_argument("--passage", required=True, type=Path, help="the study's text of prompts")
    parser.add_argument("--compare-with", type=Path, nargs="*", default=[], help="other analyses")
    parser.add_argument("--claims", required=True, type=Path, help="what the study claims")
    parser.add_argument("--taxonomy", required=True, type=Path, help="ways of drafting")
    parser.add_argument("--references", required=True, type=Path, help="the works they cite")
    parser.add_argument("--out", required=True, type=Path, help="folder of the tables")
    args = parser.parse_args()
    analysis = build_analysis(
        read_runs(args.runs),
        read_config(args.config),
        load_cards(args.models),
        read_record(args.host),
        Audit.read(args.audit),
        read_pass_times(args.pass_times),
        PublishedStudy.read(args.reported, args.claims, args.passage),
        Literature.read(args.taxonomy, args.references),
        [Analysis.read(folder) for folder in args.compare_with],
    )
    analysis.write(args.out)


if __name__ == "__main__":
    errors.run(main)
