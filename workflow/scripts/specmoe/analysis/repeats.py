"""The standard deviation of blocks of a setting, and the repeats that an interval needs.

Everything here uses the spread of speedups and never their size, so that results do not decide what
is measured longer.
"""

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import log_means, student_quantile
from specmoe.analysis.summaries import SETTING_AND_CONDITION, by_group, setting_id
from specmoe.config.measurement import Statistics

# The spread of two blocks says next to nothing: with one degree of freedom it is below a tenth of
# the true spread in 8 of 100 settings.
FEWEST_REPEATS = 3


def repeats_of_settings(pairs: pd.DataFrame, statistics: Statistics) -> pd.DataFrame:
    """Return one row per setting, sorted: how its speedups spread, and the repeats that it needs.

    `pairs` are `with_speedups`. A setting is an arm of a comparison over all repeats. Spreads are
    standard deviations of the logarithm of speedup, which for small ones are relative: 0.02 is 2 %.

    Columns: setting (its `setting_id`), those of SETTING_AND_CONDITION, runs, blocks, and

    - block_sd: between the means of blocks; the only spread an interval uses. Null with one block.
    - within_sd: between the runs of a block, pooled over blocks. It is mostly the difference
      between prompts. Null where blocks have one run.
    - planning_sd: the larger of block_sd and the pooled spread of all settings of the suite and
      target. Few blocks can agree by luck; settings measured alike on the same machine correct
      that.
    - repeats_needed: see `repeats_for`, with planning_sd.
    """
    spread = by_group(pairs, SETTING_AND_CONDITION, _row)
    if spread.empty:
        return spread
    pooled = [
        _pooled_sd(spread[(spread["suite"] == suite) & (spread["target"] == target)])
        for suite, target in zip(spread["suite"], spread["target"], strict=True)
    ]
    planning = np.fmax(spread["block_sd"].to_numpy(float), pooled)
    return spread.assign(
        setting=[
            setting_id(*setting)
            for setting in spread[SETTING_AND_CONDITION].itertuples(index=False)
        ],
        planning_sd=planning,
        repeats_needed=pd.array([repeats_for(sd, statistics) for sd in planning], dtype="Int64"),
    )


def half_width(deviation: float, blocks: int, confidence: float) -> float:
    """Return half the width of Student's interval of a mean of logs, as a share.

    NaN with one block.
    """
    if blocks < 2:
        return math.nan
    return math.expm1(student_quantile(blocks - 1, confidence) * deviation / math.sqrt(blocks))


def repeats_for(deviation: float, statistics: Statistics) -> int | None:
    """Return how many blocks make an interval no wider than ± `statistics.target_half_width`.

    FEWEST_REPEATS at least; None if the deviation is not known.
    """
    if math.isnan(deviation):
        return None
    # Student's t is above the normal quantile, so fewer blocks never suffice.
    normal = NormalDist().inv_cdf((1 + statistics.confidence) / 2)
    fewest = (normal * deviation / math.log1p(statistics.target_half_width)) ** 2
    blocks = max(FEWEST_REPEATS, math.ceil(fewest))
    while half_width(deviation, blocks, statistics.confidence) > statistics.target_half_width:
        blocks += 1
    return blocks


def _row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
    logs, block = members["speedup"].astype(float).map(math.log), members["block"]
    within = logs.groupby(block).var()
    yield {
        "runs": len(members),
        "blocks": block.nunique(),
        "block_sd": log_means(members).std(),
        "within_sd": math.sqrt(within.mean()) if within.notna().any() else math.nan,
    }


def _pooled_sd(settings: pd.DataFrame) -> float:
    """Return the deviation between blocks of several settings; NaN if each has one block."""
    known = settings[settings["blocks"] > 1]
    if known.empty:
        return math.nan
    return math.sqrt(np.average(known["block_sd"] ** 2, weights=known["blocks"] - 1))
