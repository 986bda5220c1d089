"""Say which cells of a campaign need more repeats, and write them as an overlay."""

import argparse
from pathlib import Path

import yaml

from specmoe import errors
from specmoe.analysis.machines import machine_varies
from specmoe.analysis.passes import passes_that_pay
from specmoe.analysis.spread import repeats_to_measure, spread_of_cells
from specmoe.analysis.summaries import with_speedups
from specmoe.analysis.terminal import describe_passes, describe_repeats
from specmoe.config.schema import read_config
from specmoe.errors import MeasurementError
from specmoe.files import replace_text
from specmoe.runs.disturbed import undisturbed
from specmoe.runs.schema import read_runs


def main() -> None:
    """Parse the command line, print what is asked for, and write the overlay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--out", required=True, type=Path, help="the overlay")
    args = parser.parse_args()
    config = read_config(args.config)
    runs = undisturbed(read_runs(args.runs))
    if machine_varies(runs, config):
        raise MeasurementError(
            "the machine is what varies in this campaign (campaign.hosts: any): more machines make"
            " its intervals narrower, more repeats do not"
        )
    compared = with_speedups(runs)
    spread = spread_of_cells(compared, config.statistics)
    wanted = repeats_to_measure(spread, config.statistics)
    # The repeats that were asked for before stay, or their blocks would leave the campaign again.
    repeats = dict(sorted((config.measurement.more_repeats | wanted).items()))
    replace_text(args.out, yaml.safe_dump({"measurement": {"more_repeats": repeats}}))
    print(describe_repeats(spread, wanted, config.statistics, args.out), end="")
    print(describe_passes(passes_that_pay(runs, compared)), end="")


if __name__ == "__main__":
    errors.run(main)
