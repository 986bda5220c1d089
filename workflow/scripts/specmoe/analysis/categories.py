"""What workloads show: speedups by category of prompt, and how far texts repeat themselves.

A question about other prompts of a category has its prompts as what varies, see
`intervals.interval_over_prompts`.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import interval_over_prompts
from specmoe.analysis.summaries import CELL, summarise_cells
from specmoe.audit.repetition import looping, repetition
from specmoe.config.schema import Statistics

WORKLOAD = [*CELL, "workload"]


def compare_categories(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per cell, workload and category: columns of `summarise_cells`, and prompts.

    `compared` is `with_speedups`'s frame. speedup_low and speedup_high are those of the interval
    for other prompts of the category; null with a single block or a single prompt. prompts counts
    those with a speedup; category_label names the workload too where a suite sends several. Without
    rows where no prompt has a category.
    """
    members = compared[compared["category"].notna()]
    if members.empty:
        return pd.DataFrame()

    def of_prompts(its: pd.DataFrame) -> dict[str, Any]:
        low, high = interval_over_prompts(its, settings.confidence)
        return {"prompts": its["prompt"].nunique(), "speedup_low": low, "speedup_high": high}

    cells = summarise_cells(members, settings, [*WORKLOAD, "category"], of_prompts)
    several = cells.groupby("suite")["workload"].transform("nunique") > 1
    return cells.assign(
        category_label=cells["category"].where(
            ~several, cells["category"] + " (" + cells["workload"] + ")"
        )
    )


def text_shares(runs: pd.DataFrame) -> dict[str, float]:
    """Return repetition and looping of the texts of runs.

    They are means of the runs' `repetition.repetition` and `repetition.looping`; null where no
    tokens are known.
    """
    texts = [tuple(tokens) for tokens in runs["tokens"] if tokens is not None]
    return {
        "repetition": float(np.mean([repetition(text) for text in texts])) if texts else math.nan,
        "looping": float(np.mean([looping(text) for text in texts])) if texts else math.nan,
    }
