"""How often a block should go through its prompts, from what spreads and what takes time.

Blocks differ in what their runs share, and each run has noise of its own. Another pass lessens the
noise alone; another block lessens both, but also starts and warms up every engine again.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import residual_square
from specmoe.analysis.summaries import by_group
from specmoe.config.block import Protocol
from specmoe.config.matrix import comparison_of

MOST_PASSES = 8


def passes_that_pay(runs: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Return one row per comparison of protocol `paired`, sorted: the passes that cost least.

    `runs` is `schema.read_runs`'s frame, `compared` is `with_speedups(runs)`. Speeds are not used,
    only spreads and times. Columns:

    - comparison: the blocks' id without their repeat; passes: of its blocks.
    - between_sd: standard deviation of log speedups between blocks, less what the runs' own noise
      adds; run_sd: that noise. Both are pooled over the comparison's cells, and null with one block
      or with one prompt and one pass.
    - block_ms: start and warm-ups of all sides; pass_ms: one time through the prompts of all sides.
    - passes_that_pay: see `cheapest_passes`; null where a spread is not known.
    """
    paired = runs[(runs["protocol"] == Protocol.PAIRED) & runs["start_ms"].notna()]
    named = compared.assign(comparison=compared["block"].map(comparison_of))

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        passes, prompts = int(members["pass"].max()) + 1, members["prompt"].nunique()
        blocks = members["block"].nunique()
        sides = members.drop_duplicates(["block", "draft", "gamma", "imposed_acceptance"])
        block_ms = sides[["start_ms", "warm_up_ms"]].to_numpy(float).sum() / blocks
        pass_ms = members[["prompt_ms", "decode_ms"]].to_numpy(float).sum() / (blocks * passes)
        own = named[named["comparison"] == members["comparison"].iloc[0]]
        between, noise = _variances(own, prompts * passes)
        yield {
            "passes": passes,
            "between_sd": math.sqrt(between),
            "run_sd": math.sqrt(noise),
            "block_ms": block_ms,
            "pass_ms": pass_ms,
            "passes_that_pay": cheapest_passes(between, noise / prompts, block_ms, pass_ms),
        }

    paired = paired.assign(comparison=paired["block"].map(comparison_of))
    found = by_group(paired, ["comparison"], row)
    return found.astype({"passes_that_pay": "Int64"}) if len(found) else found


def cheapest_passes(between: float, within: float, block_ms: float, pass_ms: float) -> int | None:
    """Return how many passes a block should have, at most MOST_PASSES; None if a value is unknown.

    `between` is the variance between blocks, `within` that of one pass's mean. A mean over blocks
    of P passes has the variance (between + within / P) / blocks at the cost blocks · (block_ms + P
    · pass_ms). Their product is least at P = √(block_ms / pass_ms · within / between).
    """
    if math.isnan(between) or math.isnan(within):
        return None

    def product(passes: int) -> float:
        return (between + within / passes) * (block_ms + passes * pass_ms)

    return min(range(1, MOST_PASSES + 1), key=product)


def _variances(compared: pd.DataFrame, runs_of_block: int) -> tuple[float, float]:
    """Return the variances of log speedups between blocks, and of a run; both NaN if unknown."""
    between, noise = [], []
    for _, cell in compared.groupby(["gamma", "imposed_acceptance"], dropna=False):
        logs = cell["speedup"].astype(float).map(math.log)
        table = logs.groupby([cell["block"], cell["prompt"], cell["pass"]]).mean().unstack([1, 2])
        if min(table.shape) < 2 or table.isna().any(axis=None):
            continue
        values = table.to_numpy(float)
        noise.append(residual_square(values))
        between.append(values.mean(1).var(ddof=1))
    if not noise:
        return math.nan, math.nan
    run = float(np.mean(noise))
    return max(float(np.mean(between)) - run / runs_of_block, 0.0), run
