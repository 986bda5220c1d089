"""How much blocks of one cell differ, and how many repeats an interval of stated width needs.

Everything here uses the spread of speedups and never their size, so that results do not decide what
is measured longer.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import log_means, residual_square, student_quantile
from specmoe.analysis.summaries import CELL
from specmoe.config.matrix import comparison_of
from specmoe.config.schema import Statistics

# The spread of two blocks says next to nothing: with one degree of freedom it is below a tenth of
# the true spread in 8 of 100 cells.
FEWEST_REPEATS = 3

# What makes a cell of runs of any kind.
_WHOLE_CELL = [*CELL, "imposed_acceptance", "temperature"]


def spread_of_cells(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per cell, sorted: how its speedups spread, and the repeats that it needs.

    `compared` is `with_speedups`. A cell is a side of a comparison over all repeats; runs of
    imposed acceptance, or of another temperature, are cells of their own. Spreads are standard
    deviations of the logarithm of speedup, which for small ones are relative: 0.02 is 2 %.

    Columns: cell (its id: suite/target/draft/g<gamma>, with /a<acceptance> where it was imposed and
    /t<temperature> where the suite has several), at (words for these two parts, acceptance as
    realised), comparison (the id of its blocks without their
    repeat, by which more repeats are asked for), suite, target, draft, gamma, imposed_acceptance,
    acceptance_rate (as realised), temperature, runs, blocks, and

    - block_sd: between the means of blocks; the only spread an interval uses. Null with one block.
    - within_sd: between the runs of a block, pooled over blocks. It is mostly the difference
      between prompts. Null where blocks have one run.
    - noise_sd: what remains of a block's means for its prompts after the block's own mean and each
      prompt's are subtracted. If blocks differed in nothing else, block_sd would be noise_sd /
      √(prompts). Null unless all blocks have the same prompts, two at least.
    - planning_sd: the larger of block_sd and the pooled spread of all cells of the suite and
      target. Few blocks can agree by luck; cells measured alike on the same machine correct that.
    - half_width: of the interval by planning_sd and Student's t, as a share of the speedup.
    - repeats_needed: see `repeats_for`, with planning_sd.
    """
    several = compared.groupby("suite")["temperature"].transform("nunique").gt(1)
    rows = [
        _row(dict(zip(_WHOLE_CELL, key, strict=True)), members, at_several=bool(at_several))
        for (at_several, *key), members in compared.groupby(
            [several.rename("several"), *_WHOLE_CELL], dropna=False
        )
    ]
    if not rows:
        return pd.DataFrame()
    spread = pd.DataFrame(rows)
    pooled = [
        _pooled_sd(spread[(spread["suite"] == suite) & (spread["target"] == target)])
        for suite, target in zip(spread["suite"], spread["target"], strict=True)
    ]
    planning = np.fmax(spread["block_sd"].to_numpy(float), pooled)
    widths = [
        half_width(sd, blocks, settings.confidence)
        for sd, blocks in zip(planning, spread["blocks"], strict=True)
    ]
    needed = pd.array([repeats_for(sd, settings) for sd in planning], dtype="Int64")
    spread = spread.assign(planning_sd=planning, half_width=widths, repeats_needed=needed)
    return spread.sort_values([*CELL, "cell"], ignore_index=True)


def cell_id(
    suite: str, target: str, draft: str, gamma: int, acceptance: float = math.nan, at: str = ""
) -> str:
    """Return the id of a cell; `at` is the part for its temperature."""
    imposed = [] if math.isnan(acceptance) else [f"a{acceptance:g}"]
    return "/".join([suite, target, draft, f"g{gamma}", *imposed, *([at] if at else [])])


def half_width(deviation: float, blocks: int, confidence: float) -> float:
    """Return half the width of Student's interval of a mean of logs, as a share.

    NaN with one block.
    """
    if blocks < 2:
        return math.nan
    return math.expm1(student_quantile(blocks - 1, confidence) * deviation / math.sqrt(blocks))


def repeats_for(deviation: float, settings: Statistics) -> int | None:
    """Return how many blocks make an interval no wider than ± `settings.precision`.

    FEWEST_REPEATS at least; None if the deviation is not known.
    """
    if math.isnan(deviation):
        return None
    # Student's t is above the normal quantile, so fewer blocks never suffice.
    normal = NormalDist().inv_cdf((1 + settings.confidence) / 2)
    fewest = (normal * deviation / math.log1p(settings.precision)) ** 2
    blocks = max(FEWEST_REPEATS, math.ceil(fewest))
    while half_width(deviation, blocks, settings.confidence) > settings.precision:
        blocks += 1
    return blocks


def repeats_to_measure(spread: pd.DataFrame, settings: Statistics) -> dict[str, int]:
    """Return, by comparison, how many repeats the next round should bring it to; {} when all done.

    `spread` is `spread_of_cells`. All sides of a comparison are repeated together, as often as the
    cell that needs most. Stopping by width leaves speedups unbiased where noise is symmetric, since
    the rule never uses them. It makes intervals somewhat too narrow, because cells stop sooner when
    their blocks happen to agree. Three things keep that small: a minimum of FEWEST_REPEATS, the
    pooled spread, and that a round measures all repeats it asks for at once.
    """
    if spread.empty:
        return {}
    needed = spread["repeats_needed"].fillna(FEWEST_REPEATS).clip(upper=settings.repeats_limit)
    both = spread.assign(needed=needed).groupby("comparison")[["needed", "blocks"]].max()
    short = both.loc[both["needed"] > both["blocks"], "needed"]
    return {str(comparison): int(count) for comparison, count in short.items()}


def _row(key: Mapping[str, Any], members: pd.DataFrame, *, at_several: bool) -> dict[str, object]:
    logs = members["speedup"].astype(float).map(math.log)
    block = members["block"]
    within = logs.groupby(block).var()
    table = logs.groupby([block, members["prompt"]]).mean().unstack()
    known = min(table.shape) > 1 and table.notna().all(axis=None)
    counts = members[["accepted", "drafted"]].astype(float).sum(min_count=1)
    imposed = math.nan if pd.isna(key["imposed_acceptance"]) else float(key["imposed_acceptance"])
    rate = counts["accepted"] / counts["drafted"] if counts["drafted"] else math.nan
    at = f"t{key['temperature']:g}" if at_several else ""
    words = [] if math.isnan(imposed) else [f"{100 * rate:.0f} %"]
    words += [f"T = {key['temperature']:g}"] if at_several else []
    return {
        "cell": cell_id(key["suite"], key["target"], key["draft"], key["gamma"], imposed, at),
        "at": ", ".join(words),
        "comparison": comparison_of(str(block.iloc[0])),
        **key,
        "imposed_acceptance": imposed,
        "acceptance_rate": rate,
        "runs": len(members),
        "blocks": block.nunique(),
        "block_sd": log_means(members).std(),
        "within_sd": math.sqrt(within.mean()) if within.notna().any() else math.nan,
        # The residual deviation of block × prompt, both means subtracted.
        "noise_sd": math.sqrt(residual_square(table.to_numpy(float))) if known else math.nan,
    }


def _pooled_sd(cells: pd.DataFrame) -> float:
    """Return the deviation between blocks of several cells; NaN if each has one block."""
    known = cells[cells["blocks"] > 1]
    if known.empty:
        return math.nan
    return math.sqrt(np.average(known["block_sd"] ** 2, weights=known["blocks"] - 1))
