"""Say how to measure a campaign in another sitting, and write its repeats as an overlay."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from specmoe.analysis.sittings import FEWEST_SITTINGS, another_sitting, sittings_of
from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.files import replace_text
from specmoe.runs.schema import read_runs
from specmoe.words import counted


@script
def main(runs: Path, config: Path, out: Path) -> None:
    config, runs = read_config(config), read_runs(runs)
    sittings = sittings_of(runs, config.statistics.sitting_gap_h).nunique()
    repeats = another_sitting(config.measurement, sittings)
    more = repeats["repeats"] - config.measurement.repeats
    replace_text(out, yaml.safe_dump({"measurement": repeats}))
    begins = runs["started_at"].max() + timedelta(hours=config.statistics.sitting_gap_h)
    wait = f" from {begins:%d %B, %H:%M} (UTC) on" if begins > datetime.now(UTC) else ""
    print(
        f"This campaign has {counted(sittings, 'sitting')}. Another one{wait} takes"
        f" {counted(more, 'repeat')} more of every comparison:\n\n"
        f"  snakemake --cores 1 plan --configfile <those of this campaign> {out}\n"
        f"  snakemake --cores 1 advise --configfile <those of this campaign> {out}\n\n"
        f"From {FEWEST_SITTINGS} sittings on, intervals are over sittings."
    )
