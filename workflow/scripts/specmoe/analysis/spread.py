"""How much blocks of one cell differ, and how many repeats an interval of stated width needs.

Everything here uses the spread of speedups and never their size, so that results do not decide what
is measured longer.
"""

import math
from collections.abc import Mapping
from functools import cache
from statistics import NormalDist

import numpy as np
import pandas as pd

from specmoe.config.matrix import comparison_of
from specmoe.config.schema import Statistics

# The spread of two blocks says next to nothing: with one degree of freedom it is below a tenth of
# the true spread in 8 of 100 cells.
FEWEST_REPEATS = 3


def spread_of_cells(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per cell, sorted: how its speedups spread, and the repeats that it needs.

    `compared` is `with_speedups`. A cell is what repeats of one block share, so runs of imposed
    acceptance or of another temperature are cells of their own. Spreads are standard deviations of
    the logarithm of speedup, which for small ones are relative: 0.02 is 2 %.

    Columns: cell, suite, target, draft, gamma, runs, blocks, and

    - block_sd: between the means of blocks; the only spread an interval uses. Null with one block.
    - within_sd: between the runs of a block, pooled over blocks. It is mostly the difference
      between prompts. Null where blocks have one run.
    - noise_sd: what remains within blocks after each prompt's mean is subtracted. If blocks
      differed in nothing else, block_sd would be noise_sd / √(runs of a block). Null unless all
      blocks have the same prompts, two at least.
    - planning_sd: the larger of block_sd and the pooled spread of all cells of the suite and
      target. Few blocks can agree by luck; cells measured alike on the same machine correct that.
    - half_width: of the interval by planning_sd and Student's t, as a share of the speedup.
    - repeats_needed: see `repeats_for`, with planning_sd.
    """
    named = compared.assign(cell=compared["block"].map(comparison_of))
    rows = [_row(str(cell), members) for cell, members in named.groupby("cell")]
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
    return spread.sort_values(["suite", "target", "draft", "gamma", "cell"], ignore_index=True)


def half_width(deviation: float, blocks: int, confidence: float) -> float:
    """Return half the width of Student's interval of a mean of logs, as a share.

    NaN with one block. The interval is wider than a bootstrap over few blocks, which cannot reach
    beyond their range.
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
    fewest = (
        _normal_quantile(settings.confidence) * deviation / math.log1p(settings.precision)
    ) ** 2
    blocks = max(FEWEST_REPEATS, math.ceil(fewest))
    while half_width(deviation, blocks, settings.confidence) > settings.precision:
        blocks += 1
    return blocks


def repeats_to_measure(spread: pd.DataFrame, settings: Statistics) -> dict[str, int]:
    """Return, by cell, how many repeats the next round should bring it to; {} when all are done.

    `spread` is `spread_of_cells`. Stopping by width leaves speedups unbiased where noise is
    symmetric, since the rule never uses them. It makes intervals somewhat too narrow, because cells
    stop sooner when their blocks happen to agree. Three things keep that small: a minimum of
    FEWEST_REPEATS, the pooled spread, and that a round measures all repeats it asks for at once.
    """
    needed = spread["repeats_needed"].fillna(FEWEST_REPEATS).clip(upper=settings.repeats_limit)
    short = needed[needed > spread["blocks"]].astype(int)
    return dict(zip(spread.loc[short.index, "cell"], short, strict=True))


def with_baselines(
    wanted: Mapping[str, int], runs: pd.DataFrame, before: Mapping[str, int]
) -> dict[str, int]:
    """Return the wanted repeats with those of the baselines that the cells are compared with.

    A speedup is against the baseline of the same repeat, so a baseline needs as many repeats as the
    cell that needs most. The repeats asked for `before` stay, or their blocks would leave the
    campaign again.
    """
    blocks = runs.set_index("run")["block"]
    paired = runs[runs["baseline"].isin(blocks.index)]
    cells = paired["block"].map(comparison_of)
    baselines = paired["baseline"].map(blocks).map(comparison_of)
    repeats = dict(before)
    for cell, count in wanted.items():
        for needed in {cell, *baselines[cells == cell]}:
            repeats[needed] = max(count, repeats.get(needed, 0))
    return dict(sorted(repeats.items()))


@cache
def student_quantile(degrees: int, confidence: float) -> float:
    """Return Student's two-sided t for that confidence.

    By bisection of the distribution function for whole degrees of freedom, Abramowitz and Stegun
    26.7.3 and 26.7.4.
    """
    low, high = 0.0, _normal_quantile(confidence)
    while _student_share(high, degrees) < confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        below = _student_share(middle, degrees) < confidence
        low, high = (middle, high) if below else (low, middle)
    return high


def _normal_quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _student_share(t: float, degrees: int) -> float:
    """Return the probability of |T| ≤ t."""
    angle = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + odd, degrees, 2):
        term *= math.cos(angle) ** 2 * (step - 1) / step
        total += term
    series = math.sin(angle) * total
    return 2 / math.pi * (angle + series) if odd else series


def _row(cell: str, members: pd.DataFrame) -> dict[str, object]:
    first = members.iloc[0]
    logs = members["speedup"].astype(float).map(math.log)
    block = members["block"]
    within = logs.groupby(block).var()
    return {
        "cell": cell,
        **{key: first[key] for key in ("suite", "target", "draft", "gamma")},
        "runs": len(members),
        "blocks": block.nunique(),
        "block_sd": logs.groupby(block).mean().std(),
        "within_sd": math.sqrt(within.mean()) if within.notna().any() else math.nan,
        "noise_sd": _noise(logs.groupby([block, members["prompt"]]).mean().unstack()),
    }


def _noise(logs: pd.DataFrame) -> float:
    """Return the residual deviation of block × prompt, both means subtracted."""
    blocks, prompts = logs.shape
    if min(blocks, prompts) < 2 or logs.isna().any(axis=None):
        return math.nan
    values = logs.to_numpy(float)
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return math.sqrt((rest**2).sum() / ((blocks - 1) * (prompts - 1)))


def _pooled_sd(cells: pd.DataFrame) -> float:
    """Return the deviation between blocks of several cells; NaN if each has one block."""
    known = cells[cells["blocks"] > 1]
    if known.empty:
        return math.nan
    return math.sqrt(np.average(known["block_sd"] ** 2, weights=known["blocks"] - 1))
