"""What a suite measured, for the terminal."""

import pandas as pd

from specmoe.analysis.spread import spread_of_cells
from specmoe.analysis.spread_text import precise
from specmoe.analysis.summaries import CELL, summarise_cells, with_speedups
from specmoe.config.block import NO_DRAFT
from specmoe.config.matrix import comparison_of
from specmoe.config.schema import Config
from specmoe.runs.disturbed import undisturbed
from specmoe.words import counted


def summarise_suite(runs: pd.DataFrame, suite: str, config: Config) -> str:
    """Return a suite's rates, and speedups with their intervals, as a table of plain text.

    `runs` holds the suite's rows and those of the suite that has its baselines.
    """
    own = runs[runs["suite"] == suite]
    plain = own[own["draft"] == NO_DRAFT]
    compared = with_speedups(undisturbed(runs))
    compared = compared[compared["suite"] == suite]
    spread = spread_of_cells(compared, config.statistics)
    # A cell's id also has what else a suite varies: temperature, or imposed acceptance.
    cells = summarise_cells(
        compared.assign(cell=compared["block"].map(comparison_of)),
        config.statistics,
        [*CELL, "cell"],
    )
    parts = [f"Suite {suite}: {config.suites[suite].title}, {counted(len(own), 'run')}"]
    if len(plain):
        varied = ["temperature"] if plain["temperature"].nunique() > 1 else []
        rates = plain.groupby(["target", "n_prompt", "prompt", *varied])["tokens_per_second"]
        table = rates.agg(["mean", "std"]).reset_index()
        table = table.rename(columns={"n_prompt": "tokens", "mean": "tok/s", "std": "sd"})
        parts += ["", "Without a draft", _text(table)]
    if len(cells):
        table = pd.DataFrame(
            {
                "target": cells["target"],
                "draft": cells["draft"],
                "γ": cells["gamma"],
                **_conditions(cells["cell"]),
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
            _text(table),
        ]
    return "\n".join(parts) + "\n"


def _conditions(cells: "pd.Series[str]") -> dict[str, "pd.Series[str]"]:
    """Return the parts of the cells' ids beyond suite, target, draft and γ; {} for most suites."""
    beyond = cells.str.split("/").str[len(CELL) :].str.join(" ")
    return {"at": beyond} if beyond.any() else {}


def _text(table: pd.DataFrame) -> str:
    return table.to_string(index=False, float_format=lambda value: f"{value:.2f}", na_rep="-")
