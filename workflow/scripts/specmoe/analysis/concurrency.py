"""What requests at once do to the gain of drafting: throughput, and the speed of each user.

A load is one side of a block in one pass through its prompts, see `measure.load`. Its throughput is
compared with that of the load without a draft in the same block and pass, at the same number of
requests at once. The speed of a user is a run's own rate, as everywhere.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import ratio_of_speedups
from specmoe.analysis.summaries import CELL, by_group, mean_ratio, summarise_cells
from specmoe.config.option_words import without_concurrency
from specmoe.config.schema import Statistics

# A setting whose loads are compared at several numbers of requests at once.
SETTING = ["suite", "of_target", "draft", "gamma", "imposed_acceptance"]


def of_loads(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that are a part of a load."""
    return runs[runs["load_s"].notna()]


def one_by_one(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that had the server for themselves, without a load."""
    return runs[runs["load_s"].isna()]


def compare_loads(compared: pd.DataFrame, runs: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per cell and imposed acceptance of runs in loads; without rows if none was.

    `compared` is `with_speedups` of `runs`. of_target is the target without the
    number of requests at once; loads counts those with the draft; throughput and
    baseline_throughput are their means in tokens a second; throughput_ratio is the geometric mean
    over blocks, with its interval, null with a single block, and so are speedup, of the users' own
    rates, and first_token_ratio; imposed_acceptance is null where acceptance is the draft's own;
    tokens_per_pass are the tokens that all users got for each pass of the target.
    """
    members = _with_ratios(of_loads(compared), runs)
    if members.empty:
        return pd.DataFrame()

    def of_load(its: pd.DataFrame) -> dict[str, Any]:
        means = ("baseline_throughput", "tokens_per_pass", "baseline_tokens_per_pass")
        return {
            "concurrency": int(its["concurrency"].iloc[0]),
            "loads": len(its.drop_duplicates(["block", "pass"])),
            "throughput": its["load_tokens_per_second"].mean(),
            **{name: its[name].mean() for name in means},
            **mean_ratio("throughput_ratio", its, settings),
        }

    cells = summarise_cells(members, settings, [*CELL, "imposed_acceptance"], of_load)
    return cells.assign(of_target=cells["target"].map(without_concurrency))


def changes_with_concurrency(
    compared: pd.DataFrame, runs: pd.DataFrame, settings: Statistics
) -> pd.DataFrame:
    """Return how each setting's gain in throughput changes from the fewest requests to the most.

    Columns: those of TABLES. least and most are these numbers of requests at once, with the
    throughput ratio at each and its own interval, least_cell (also as target) and most_cell the
    targets there; found is what the interval says: `falls`, `rises` or `undecided`.
    change is the ratio at most over that at least, with an interval by Welch's t, as these are
    different blocks. Bonferroni's share of the level makes the intervals of all `settings` hold at
    once. Without rows where no setting has loads at several numbers.
    """
    members = _with_ratios(of_loads(compared), runs)
    members = members.assign(of_target=members["target"].map(without_concurrency))
    numbers = members.groupby(SETTING, dropna=False)["concurrency"]
    members = members[numbers.transform("nunique") > 1]
    count = members.groupby(SETTING, dropna=False).ngroups

    def row(its: pd.DataFrame) -> Iterator[dict[str, Any]]:
        ratios = its["throughput_ratio"]
        its = its.assign(speedup=ratios, at_least=ratios, at_most=ratios)
        least, *_, most = (own for _, own in its.groupby("concurrency"))
        level = 1 - (1 - settings.confidence) / count
        yield {
            "settings": count,
            "least": int(least["concurrency"].iloc[0]),
            "least_cell": least["target"].iloc[0],
            **mean_ratio("at_least", least, settings),
            "most": int(most["concurrency"].iloc[0]),
            "most_cell": most["target"].iloc[0],
            **mean_ratio("at_most", most, settings),
            **ratio_of_speedups(most, least, level).columns("change"),
        }

    changes = by_group(members, SETTING, row)
    if changes.empty:
        return changes
    found = np.where(changes["change_low"] > 1, "rises", "undecided")
    return changes.assign(
        target=changes["least_cell"],
        found=np.where(changes["change_high"] < 1, "falls", found),
    )


def _with_ratios(compared: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs in loads with the throughput of their baselines' loads, and the ratio to it."""
    baselines = runs.set_index("run")[["load_tokens_per_second", "load_tokens", "load_decodes"]]
    of_baseline = baselines.astype(float).reindex(compared["baseline"]).set_index(compared.index)
    throughput = compared["load_tokens_per_second"].astype(float)
    return compared.assign(
        imposed_acceptance=compared["imposed_acceptance"].astype(float),
        baseline_throughput=of_baseline["load_tokens_per_second"],
        throughput_ratio=throughput / of_baseline["load_tokens_per_second"],
        tokens_per_pass=compared["load_tokens"].astype(float)
        / compared["load_decodes"].astype(float),
        baseline_tokens_per_pass=of_baseline["load_tokens"] / of_baseline["load_decodes"],
    )
