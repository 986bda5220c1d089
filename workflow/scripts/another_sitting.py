"""Say how to measure a campaign in another sitting, and write its repeats as an overlay."""

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from specmoe import errors
from specmoe.analysis.machines import machine_varies
from specmoe.analysis.sittings import FEWEST_SITTINGS, another_sitting, sittings_of
from specmoe.config.schema import read_config
from specmoe.errors import MeasurementError
from specmoe.files import replace_text
from specmoe.runs.schema import read_runs
from specmoe.words import counted


def main() -> None:
    """Parse the command line, write the overlay, and print when and how to use it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--out", required=True, type=Path, help="the overlay")
    args = parser.parse_args()
    config, runs = read_config(args.config), read_runs(args.runs)
    if machine_varies(runs, config):
        raise MeasurementError(
            "the machine is what varies in this campaign (campaign.hosts: any): another machine"
            " tells more than another sitting"
        )
    sittings = sittings_of(runs, config.statistics.sitting_gap_h).nunique()
    repeats = another_sitting(config.measurement, sittings)
    more = repeats["repeats"] - config.measurement.repeats
    replace_text(args.out, yaml.safe_dump({"measurement": repeats}))
    begins = runs["started_at"].max() + timedelta(hours=config.statistics.sitting_gap_h)
    wait = f" from {begins:%d %B, %H:%M} (UTC) on" if begins > datetime.now(UTC) else ""
    print(
        f"This campaign has {counted(sittings, 'sitting')}. Another one{wait} takes"
        f" {counted(more, 'repeat')} more of every comparison:\n\n"
        f"  snakemake --cores 1 plan --configfile <those of this campaign> {args.out}\n"
        f"  snakemake --cores 1 advise --configfile <those of this campaign> {args.out}\n\n"
        f"From {FEWEST_SITTINGS} sittings on, intervals are over sittings."
    )


if __name__ == "__main__":
    errors.run(main)
