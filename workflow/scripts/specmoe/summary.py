"""What a suite measured, for the terminal."""

import pandas as pd

from specmoe.block import NO_DRAFT
from specmoe.config import Config
from specmoe.statistics import summarise_cells, unpaired_baselines, with_speedups


def summarise_suite(runs: pd.DataFrame, suite: str, config: Config) -> str:
    """Return a suite's rates, and speedups with their intervals, as a table of plain text.

    `runs` holds the suite's rows and those of the suite that has its baselines.
    """
    own = runs[runs["suite"] == suite]
    plain = own[own["draft"] == NO_DRAFT]
    compared = with_speedups(runs)
    cells = summarise_cells(
        compared[compared["suite"] == suite], unpaired_baselines(runs), config.statistics
    )
    parts = [f"Suite {suite}: {config.suites[suite].title}, {len(own)} runs"]
    if len(plain):
        rates = plain.groupby(["target", "n_prompt", "prompt"])["tokens_per_second"]
        table = rates.agg(["mean", "std"]).reset_index()
        table.columns = pd.Index(["target", "tokens", "prompt", "tok/s", "sd"])
        parts += ["", "Without a draft", _text(table)]
    if len(cells):
        table = pd.DataFrame(
            {
                "target": cells["target"],
                "draft": cells["draft"],
                "γ": cells["gamma"],
                "tok/s": cells["tokens_per_second"],
                "acceptance %": cells["acceptance_rate"] * 100,
                "speedup": cells["speedup"],
                "low": cells["speedup_low"],
                "high": cells["speedup_high"],
            }
        )
        confidence = f"{config.statistics.confidence:.0%}"
        parts += ["", f"With a draft (low, high: {confidence} interval over blocks)", _text(table)]
    return "\n".join(parts) + "\n"


def _text(table: pd.DataFrame) -> str:
    return table.to_string(index=False, float_format=lambda value: f"{value:.2f}")
