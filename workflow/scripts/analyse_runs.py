"""Compute every table of the analysis from the runs of a campaign."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd

from specmoe import errors
from specmoe.analysis import analyse
from specmoe.config import Config
from specmoe.records import read_runs
from specmoe.reported import compare, read_reported


def main() -> None:
    """Parse the command line and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--models", required=True, type=Path, help="their cards, models.json")
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--audit", required=True, type=Path, help="folder of the findings")
    parser.add_argument("--reported", required=True, type=Path, help="what the study prints")
    parser.add_argument("--out", required=True, type=Path, help="folder of the tables")
    args = parser.parse_args()
    config = Config.model_validate_json(args.config.read_text())
    cards, host = (json.loads(path.read_text()) for path in (args.models, args.host))
    analysis = replace(
        analyse(read_runs(args.runs), config, cards, host),
        audit=pd.read_parquet(args.audit / "summary.parquet"),
        required_time=pd.read_parquet(args.audit / "required_time.parquet"),
    )
    if config.campaign.source == "published":
        analysis = replace(analysis, reported=compare(read_reported(args.reported), analysis))
    analysis.write(args.out)


if __name__ == "__main__":
    errors.run(main)
