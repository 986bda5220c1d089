"""Cells side by side: by method, by temperature, by type of file, by category of prompt."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import Estimate, interval_over_prompts, ratio_of_speedups
from specmoe.analysis.rounds import drafting_share
from specmoe.analysis.summaries import CELL, fastest, summarise_cells
from specmoe.audit.repetition import looping, repetition
from specmoe.config.block import MEASURED_BY, Protocol
from specmoe.config.schema import Statistics

_OF_NETWORK = ["suite", "network", "draft", "gamma"]
_PAIR = ["target", "draft", "gamma"]


def compare_methods(cells: pd.DataFrame, runs: pd.DataFrame, drafts: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of targets that a suite measured with several methods.

    `cells` is `summarise_cells`'s frame of `runs`, `drafts` is `list_drafts`'s. Columns added:
    words and setting, see `list_drafts`; drafting_share, see the function; best (see `fastest`,
    among these cells).
    """
    if cells.empty:
        return cells
    in_suite = cells.groupby(["suite", "target", *MEASURED_BY])
    cells = cells[in_suite["method"].transform("nunique").gt(1)]
    share = drafting_share(runs[runs["protocol"] == Protocol.PAIRED])
    named = drafts.set_index("draft")
    return cells.assign(
        words=cells["draft"].map(named["words"]),
        setting=cells["draft"].map(named["setting"]),
        drafting_share=share.reindex(pd.MultiIndex.from_frame(cells[CELL])).to_numpy(float),
        best=fastest(cells),
    ).reset_index(drop=True)


def compare_temperatures(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return `summarise_cells`'s row per suite, target, draft, gamma and temperature, sorted.

    `compared` is `with_speedups`'s frame without runs of imposed acceptance. Suites of several
    temperatures are compared at each, others where theirs is above zero.
    """
    several = compared.groupby("suite")["temperature"].transform("nunique") > 1
    chosen = compared[several | (compared["temperature"] > 0)]
    if chosen.empty:
        return pd.DataFrame()
    return summarise_cells(chosen, settings, [*CELL, "temperature"])


def compare_types(
    cells: pd.DataFrame,
    compared: pd.DataFrame,
    networks: Mapping[str, str],
    pass_bytes: Mapping[str, float],
    settings: Statistics,
) -> pd.DataFrame:
    """Return the cells of networks that a suite measured as targets in files of several sizes.

    `cells` is `summarise_cells(compared)`, `networks` names each model's network, `pass_bytes` are
    the bytes that a pass over one token of each model reads. Rows are in order of these bytes
    within each suite, network, draft and γ. Columns added to those of the cells:

    - network, pass_bytes.
    - gain_ratio: the speedup over that of the file which reads the fewest bytes; gain_ratio_low,
      gain_ratio_high: its interval, null for that file itself, or with a single block.
    """
    if cells.empty:
        return cells
    cells = cells.assign(
        network=cells["target"].map(networks), pass_bytes=cells["target"].map(pass_bytes)
    )
    sizes = cells.groupby(_OF_NETWORK)["pass_bytes"].transform("nunique")
    cells = cells[sizes > 1].sort_values([*_OF_NETWORK, "pass_bytes"], ignore_index=True)
    runs = dict(list(compared.groupby(CELL)))
    ratios = []
    for _, members in cells.groupby(_OF_NETWORK):
        first, *others = members[CELL].itertuples(index=False, name=None)
        ratios.append(Estimate(1.0))
        ratios += [ratio_of_speedups(runs[key], runs[first], settings.confidence) for key in others]
    return cells.join(pd.DataFrame([ratio.columns("gain_ratio") for ratio in ratios], dtype=float))


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

    cells = summarise_cells(members, settings, [*CELL, "workload", "category"], of_prompts)
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
