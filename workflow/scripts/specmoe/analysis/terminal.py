"""Tables of plain text for a terminal: a suite and the spread of blocks."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml

from specmoe.analysis.spread import repeats_to_measure, spread_of_cells
from specmoe.analysis.summaries import SETTING, make_pairs, summarise, with_speedups
from specmoe.config.block import NO_DRAFT
from specmoe.config.schema import Config, Statistics
from specmoe.files import replace_text
from specmoe.runs.disturbed import undisturbed
from specmoe.runs.schema import read_runs
from specmoe.words import counted, verb


def summarise_suite(runs: pd.DataFrame, suite: str, config: Config) -> str:
    """Return a suite's rates, and speedups with their intervals, as a table of plain text.

    `runs` holds the suite's rows and those of the suite that has its baselines.
    """
    own = runs[runs["suite"] == suite]
    pairs = make_pairs(runs, config.audit.unrelated_drafts, {})
    pairs = pairs[pairs["counts"] & (pairs["suite"] == suite)]
    cells = summarise(pairs, SETTING, config.statistics)
    parts = [f"Suite {suite}: {config.suites[suite].title}, {counted(len(own), 'run')}"]
    plain = own[own["draft"] == NO_DRAFT]
    if len(plain):
        varied = ["temperature"] if plain["temperature"].nunique() > 1 else []
        rates = plain.groupby(["target", "n_prompt", "prompt", *varied])["tokens_per_second"]
        table = rates.agg(["mean", "std"]).reset_index()
        table = table.rename(columns={"n_prompt": "tokens", "mean": "tok/s", "std": "sd"})
        parts += ["", "Without a draft", _text(table, 2)]
    if len(cells):
        spread = spread_of_cells(pairs, config.statistics)
        beyond = cells["condition"].astype(object).fillna("")
        table = pd.DataFrame(
            {
                "target": cells["target"],
                "draft": cells["draft"],
                "γ": cells["gamma"],
                **({"at": beyond} if beyond.any() else {}),
                "tok/s": cells["tokens_per_second"],
                "acceptance %": cells["acceptance_rate"] * 100,
                "speedup": cells["speedup"],
                "low": cells["speedup_low"],
                "high": cells["speedup_high"],
                "blocks %": spread["block_sd"] * 100,
                "runs %": spread["within_sd"] * 100,
                "repeats": spread["repeats_needed"],
            }
        )
        parts += [
            "",
            f"With a draft (low, high: {config.statistics.confidence:.0%} interval over blocks;"
            " blocks %, runs %: spread of the speedup",
            "between blocks and within them;"
            f" repeats: how many {precise(config.statistics.precision)} takes at the spread seen)",
            _text(table, 2),
        ]
    return "\n".join(parts) + "\n"


def count_more_repeats(config: Config, rows: Path, out: Path) -> None:
    """Print which comparisons need more repeats, and write the configuration that measures them."""
    compared = with_speedups(undisturbed(read_runs(rows)))
    spread = spread_of_cells(compared, config.statistics)
    wanted = repeats_to_measure(spread, config.statistics)
    # The repeats that were asked for before stay, or their blocks would leave the campaign again.
    repeats = dict(sorted((config.measurement.more_repeats | wanted).items()))
    replace_text(out, yaml.safe_dump({"measurement": {"more_repeats": repeats}}))
    print(describe_repeats(spread, wanted, config.statistics, out), end="")


def describe_repeats(
    spread: pd.DataFrame, wanted: Mapping[str, int], settings: Statistics, overlay: Path
) -> str:
    """Return the spread of each cell, and the comparisons that need more repeats.

    `spread` is the frame of `spread_of_cells`, `wanted` the result of `repeats_to_measure`, and
    `overlay` the file that contains it.
    """
    if spread.empty:
        return "No cell has a speedup\n"
    table = pd.DataFrame(
        {
            "cell": spread["cell"],
            "blocks": spread["blocks"],
            "between blocks %": spread["block_sd"] * 100,
            "within %": spread["within_sd"] * 100,
            "± % now": spread["half_width"] * 100,
            f"repeats for {precise(settings.precision)}": spread["repeats_needed"],
        }
    )
    parts = [
        f"Spread of speedups, and {settings.confidence:.0%} intervals by Student's t",
        _text(table),
        "",
        _outlook(spread, wanted, settings, overlay),
    ]
    return "\n".join(parts) + "\n"


def precise(precision: float) -> str:
    """Return in words how narrow intervals should be."""
    return f"±{100 * precision:g}%"


def _outlook(
    spread: pd.DataFrame, wanted: Mapping[str, int], settings: Statistics, overlay: Path
) -> str:
    beyond = int((spread["repeats_needed"] > settings.repeats_limit).sum())
    limit = (
        f"{beyond} of {counted(len(spread), 'cell')} {verb(beyond, 'needs', 'need')} more than"
        f" statistics.repeats_limit = {settings.repeats_limit} repeats for"
        f" {precise(settings.precision)}.\n"
        if beyond
        else ""
    )
    if not wanted:
        return f"{limit}No comparison needs more repeats."
    of_all = counted(spread["comparison"].nunique(), "comparison")
    need = verb(len(wanted), "needs", "need")
    return (
        f"{limit}{len(wanted)} of {of_all} {need} more repeats."
        f" This command measures them and keeps the finished blocks:\n"
        f"  snakemake --cores 1 paper --configfile <those of this campaign> {overlay}"
    )


def _text(table: pd.DataFrame, digits: int = 1) -> str:
    return table.to_string(
        index=False, float_format=lambda value: f"{value:.{digits}f}", na_rep="-"
    )
