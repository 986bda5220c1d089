"""Which comparisons need more repeats, said and written as an overlay."""

from pathlib import Path

import yaml

from specmoe.analysis.spread import repeats_to_measure, spread_of_cells
from specmoe.analysis.summaries import with_speedups
from specmoe.analysis.terminal import describe_repeats
from specmoe.config.schema import Config
from specmoe.files import replace_text
from specmoe.runs.disturbed import undisturbed
from specmoe.runs.schema import read_runs


def count_more_repeats(config: Config, rows: Path, out: Path) -> None:
    """Print which comparisons need more repeats, and write the configuration that measures them."""
    compared = with_speedups(undisturbed(read_runs(rows)))
    spread = spread_of_cells(compared, config.statistics)
    wanted = repeats_to_measure(spread, config.statistics)
    # The repeats that were asked for before stay, or their blocks would leave the campaign again.
    repeats = dict(sorted((config.measurement.more_repeats | wanted).items()))
    replace_text(out, yaml.safe_dump({"measurement": {"more_repeats": repeats}}))
    print(describe_repeats(spread, wanted, config.statistics, out), end="")
