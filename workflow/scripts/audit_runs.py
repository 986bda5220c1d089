"""Hold every run of a campaign against what no true run can do."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs, summarise_audit
from specmoe.audit.text import describe_audit
from specmoe.audit.ties import gaps_of
from specmoe.config.schema import Config
from specmoe.models.gguf import ModelCard
from specmoe.models.sizes import size_of_card
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line, audit the runs, write the findings and print their summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--models", required=True, type=Path, help="their cards, models.json")
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--divergences", type=Path, nargs="*", default=[], help="judged, by target")
    parser.add_argument("--out", required=True, type=Path, help="folder of the findings")
    args = parser.parse_args()
    settings = Config.model_validate_json(args.config.read_text()).audit
    cards = json.loads(args.models.read_text())
    sizes = {model: size_of_card(ModelCard(**card)) for model, card in cards.items()}
    bandwidth = json.loads(args.host.read_text())["memory_bandwidth_bytes_per_second"]
    divergences = gaps_of(json.loads(file.read_text()) for file in args.divergences)
    runs = read_runs(args.runs)
    audit = audit_runs(runs, sizes, bandwidth, settings, divergences)
    args.out.mkdir(parents=True, exist_ok=True)
    audit.to_parquet(args.out / "audit.parquet", index=False)
    summarise_audit(audit).to_parquet(args.out / "summary.parquet", index=False)
    needed = required_time(runs, sizes, settings)
    needed.to_parquet(args.out / "required_time.parquet", index=False)
    text = describe_audit(audit, runs)
    (args.out / "audit.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    errors.run(main)
