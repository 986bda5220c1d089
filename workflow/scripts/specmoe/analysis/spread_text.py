"""The spread of blocks and the repeats it requires, as text for a terminal."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from specmoe.config.schema import Statistics
from specmoe.words import counted, verb


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
        table.to_string(index=False, float_format=lambda value: f"{value:.1f}", na_rep="-"),
        "",
        _outlook(spread, wanted, settings, overlay),
    ]
    return "\n".join(parts) + "\n"


def describe_passes(passes: pd.DataFrame) -> str:
    """Return how many passes would pay, comparison by comparison; empty if no spread is known.

    `passes` is the frame of `passes.passes_that_pay`.
    """
    known = passes.dropna(subset="passes_that_pay") if len(passes) else passes
    if known.empty:
        return ""
    table = pd.DataFrame(
        {
            "comparison": known["comparison"],
            "between blocks %": known["between_sd"] * 100,
            "a run %": known["run_sd"] * 100,
            "start and warm-ups s": known["block_ms"] / 1000,
            "a pass s": known["pass_ms"] / 1000,
            "passes": known["passes"],
            "that pay": known["passes_that_pay"],
        }
    )
    typical = round(float(known["passes_that_pay"].median()))
    return (
        "\nHow often a block should go through its prompts, to reach a precision soonest\n"
        f"{table.to_string(index=False, float_format=lambda value: f'{value:.1f}')}\n"
        f"The median is measurement.passes = {typical}; another number measures all blocks anew.\n"
    )


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
