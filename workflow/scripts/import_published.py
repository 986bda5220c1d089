"""Turn the published study's rows into ours, and say what is known of its models and machine."""

import json
from pathlib import Path

from specmoe import errors
from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.files import sha256_of
from specmoe.models.card import save_cards
from specmoe.models.expected_sizes import card_of_entry
from specmoe.runs.schema import write_runs
from specmoe.runs.study_csv import host_of_study, rows_of_csv


@script
def main(
    csv: Path, config: Path, given: dict[str, object], host: Path, models: Path, runs: Path
) -> None:
    config = read_config(config)
    if (found := sha256_of(csv)) != config.published.sha256:
        raise errors.SchemaError(
            f"{csv} is not the published runs.csv: its SHA-256 is {found}, not"
            f" {config.published.sha256}; delete it"
        )
    write_runs(rows_of_csv(csv), runs)
    cards = {model: card_of_entry(model, config) for model in config.measured_models}
    save_cards(cards, models)
    host.write_text(json.dumps(host_of_study(given), indent=1) + "\n")
