"""What workloads show: speedups by category of prompt, and how the texts end.

A question about other prompts of a category has its prompts as what varies, see
`intervals.interval_over_prompts`.
"""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import interval_over_prompts, ratio_of_prompts
from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import CELL, by_group, summarise_cells
from specmoe.audit.repetition import looping, repetition
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, Stop
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


def gaps_between_categories(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return the pairs of categories whose speedups are shown to differ, the widest gap first.

    Columns: those of TABLES. ratio is the higher speedup over the lower, with the interval of
    `ratio_of_prompts`; Bonferroni's share of the level makes the intervals of all `pairs` of a
    cell's categories hold at once. Categories of a single prompt have no pair. A cell with several
    categories and no shown gap has one row, whose ratio is null.
    """

    def gaps(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        of_category = [own for _, own in members.groupby("category") if own["prompt"].nunique() > 1]
        pairs = [*combinations(of_category, 2)]
        if not pairs:
            return
        level = 1 - (1 - settings.confidence) / len(pairs)
        shown = []
        for first, second in pairs:
            ratio = ratio_of_prompts(first, second, level)
            if ratio.value < 1:
                first, second, ratio = second, first, ratio.inverse()
            if ratio.low > 1:
                named = {"higher": first["category"].iloc[0], "lower": second["category"].iloc[0]}
                shown.append(named | ratio.columns("ratio"))
        shown.sort(key=lambda gap: gap["ratio"], reverse=True)
        for gap in shown or [{}]:
            yield {"pairs": len(pairs)} | gap

    members = compared[compared["category"].notna()]
    return by_group(members, WORKLOAD, gaps, TABLES["category_gaps"].columns)


def how_texts_end(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and workload: how long its texts are, and how they end.

    `runs` are those of `build.usual_runs`, targets alone among them. Prompts cut to a length
    are left out, and texts of no workload if their target was not asked where it ends them.
    Columns:

    - prompts, runs: how many; generated: mean tokens; shortest, longest: of any run.
    - ended: share of runs that the target ended; at_once: runs whose first token ended them, which
      have no rate and so no speedup.
    - repetition, looping, past_end: see `text_shares`; past_end_runs: runs of which the last is
      known.
    - same_length: share of runs with a draft that are as long as their baselines.
    """
    whole = ~runs["prompt"].str.startswith(PASSAGE_PREFIX)
    asked = runs.groupby(WORKLOAD, dropna=False)["past_end"].transform("count") > 0
    members = runs[runs["workload"].notna() | runs["stop"].eq(Stop.EOS) | (whole & asked)]
    lengths = runs.set_index("run")["generated"]

    def row(its: pd.DataFrame) -> Iterator[dict[str, Any]]:
        generated = its["generated"].astype(float)
        baselines = its["baseline"].map(lengths).astype(float)
        alone = its["draft"].iloc[0] == NO_DRAFT
        yield {
            "stop": its["stop"].iloc[0],
            "prompts": its["prompt"].nunique(),
            "runs": len(its),
            "generated": generated.mean(),
            "shortest": int(generated.min()),
            "longest": int(generated.max()),
            "ended": (its["stopped_by"] == Stop.EOS).mean(),
            "at_once": int((generated == 1).sum()),
            **text_shares(its),
            "past_end_runs": int(its["past_end"].notna().sum()),
            "same_length": math.nan if alone else (baselines == generated).mean(),
        }

    return by_group(members, WORKLOAD, row)


def text_shares(runs: pd.DataFrame) -> dict[str, float]:
    """Return repetition, looping and past_end of the texts of runs.

    - repetition, looping: mean of the runs' `repetition.repetition` and `repetition.looping`; null
      where no tokens are known.
    - past_end: share of the generated tokens that are past the target's own end, over the runs of
      which that is known; null where it is known of none.
    """
    texts = [tuple(tokens) for tokens in runs["tokens"] if tokens is not None]
    known = runs[runs["past_end"].notna()]
    return {
        "repetition": float(np.mean([repetition(text) for text in texts])) if texts else math.nan,
        "looping": float(np.mean([looping(text) for text in texts])) if texts else math.nan,
        "past_end": known["past_end"].sum() / known["generated"].sum() if len(known) else math.nan,
    }
