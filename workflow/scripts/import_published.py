"""Turn the published study's rows into ours, and say what is known of its models and machine."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.config.schema import read_config
from specmoe.files import sha256_of
from specmoe.models.card import save_cards
from specmoe.models.expected_sizes import card_of_entry
from specmoe.runs.schema import write_runs
from specmoe.runs.study_csv import host_of_study, rows_of_csv


def main() -> None:
    """Parse the command line and write the table of runs, the cards and the machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", required=True, type=Path, help="the authors' runs.csv")
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--given", required=True, type=json.loads, help="what is stated of it")
    parser.add_argument("--host", required=True, type=Path, help="host.json, to write")
    parser.add_argument("--models", required=True, type=Path, help="models.json, to write")
    parser.add_argument("--runs", required=True, type=Path, help="runs.parquet, to write")
    args = parser.parse_args()
    config = read_config(args.config)
    if (found := sha256_of(args.csv)) != config.published.sha256:
        raise errors.SchemaError(
            f"{args.csv} is not the published runs.csv: its SHA-256 is {found}, not"
            f" {config.published.sha256}; delete it"
        )
    write_runs(rows_of_csv(args.csv), args.runs)
    cards = {model: card_of_entry(model, config) for model in config.measured_models}
    save_cards(cards, args.models)
    args.host.write_text(json.dumps(host_of_study(args.given), indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
