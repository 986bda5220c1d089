"""How far blocks of one cell lie apart, and so how many repeats an interval of stated width takes.

Everything here looks at the spread of speedups and never at their size, so that what is measured
longer is not chosen by its result.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import NormalDist

import numpy as np
import pandas as pd

from specmoe.config.matrix import cell_of
from specmoe.config.schema import Statistics

# A spread of two blocks says next to nothing: with one degree of freedom it comes out below a tenth
# of the true one in 8 of 100 cells.
FEWEST_REPEATS = 3


def spread_of_cells(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per cell, sorted: how its speedups spread, and the repeats that it needs.

    `compared` is `with_speedups`. A cell is what repeats of one block share, so runs of imposed
    acceptance or of another temperature are cells of their own. Spreads are standard deviations of
    the logarithm of speedup, which for small ones are relative: 0.02 is 2 %.

    Columns: cell, suite, target, draft, gamma, runs, blocks, and

    - block_sd: between blocks, of their means; all that an interval knows. Null of one block.
    - within_sd: between the runs of a block, pooled over blocks: mostly that prompts gain
      differently. Null where blocks have one run.
    - noise_sd: what is left within blocks when each prompt's own mean is taken out. If blocks
      differed in nothing but this, block_sd would be noise_sd / √(runs of a block). Null unless all
      blocks have the same prompts, two at least.
    - planning_sd: the larger of block_sd and that of all cells of the suite and target pooled. Few
      blocks can agree by luck; the neighbours, measured alike on the same machine, know better.
    - half_width: what the blocks give by planning_sd and Student's t, as a share of the speedup.
    - repeats_needed: see `repeats_for`, with planning_sd.
    """
    named = compared.assign(cell=compared["block"].map(cell_of))
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
    """Return half the width of Student's interval of a mean of logs, as a share; NaN of one block.

    It is wider than a bootstrap over few blocks, which cannot reach beyond those it has.
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
    # Student's t is above the normal quantile, so no fewer blocks will do.
    fewest = (
        _normal_quantile(settings.confidence) * deviation / math.log1p(settings.precision)
    ) ** 2
    blocks = max(FEWEST_REPEATS, math.ceil(fewest))
    while half_width(deviation, blocks, settings.confidence) > settings.precision:
        blocks += 1
    return blocks


def repeats_to_measure(spread: pd.DataFrame, settings: Statistics) -> dict[str, int]:
    """Return, by cell, how many repeats the next round should bring it to; {} when all are done.

    `spread` is `spread_of_cells`. A cell goes on until its interval, by Student's t and the larger
    spread of its own and its neighbours', is as narrow as `settings.precision` asks, or until
    `settings.repeats_limit`. Stopping by width leaves speedups unbiased where noise is symmetric,
    since the rule never sees them. It makes intervals somewhat too narrow, because cells stop
    sooner when they happen to agree. Three things keep that small: a minimum of FEWEST_REPEATS, the
    pooled spread, and that a round measures all repeats it asks for, not one at a time.
    """
    wanted = spread.assign(
        wanted=spread["repeats_needed"].fillna(FEWEST_REPEATS).clip(upper=settings.repeats_limit)
    )
    short = wanted[wanted["wanted"] > wanted["blocks"]]
    return dict(zip(short["cell"], short["wanted"].astype(int), strict=True))


def with_baselines(
    wanted: Mapping[str, int], runs: pd.DataFrame, before: Mapping[str, int]
) -> dict[str, int]:
    """Return the wanted repeats with those of the baselines that the cells are compared with.

    A speedup is against the baseline of the same repeat, so a baseline needs the most of its cells.
    What was asked for before stays, or its blocks would leave the campaign again.
    """
    blocks = runs.set_index("run")["block"]
    paired = runs[runs["baseline"].isin(blocks.index)]
    cells = paired["block"].map(cell_of)
    baselines = paired["baseline"].map(blocks).map(cell_of)
    repeats = Counter(before)
    for cell, baseline in {*zip(wanted, wanted, strict=True), *zip(cells, baselines, strict=True)}:
        if cell in wanted:
            repeats[baseline] = max(wanted[cell], repeats[baseline])
    return dict(sorted(repeats.items()))


@cache
def student_quantile(degrees: int, confidence: float) -> float:
    """Return the t that a mean lies within, either side, with that confidence.

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
    """Return the residual deviation of block × prompt, both their means taken out."""
    blocks, prompts = logs.shape
    if min(blocks, prompts) < 2 or logs.isna().any(axis=None):
        return math.nan
    values = logs.to_numpy(float)
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return math.sqrt((rest**2).sum() / ((blocks - 1) * (prompts - 1)))


def _pooled_sd(cells: pd.DataFrame) -> float:
    """Return the deviation between blocks of several cells; NaN if each has one block."""
    known: Iterable[tuple[float, int]] = cells.loc[
        cells["blocks"] > 1, ["block_sd", "blocks"]
    ].itertuples(index=False, name=None)
    weights = [(sd**2, blocks - 1) for sd, blocks in known]
    degrees = sum(weight for _, weight in weights)
    if not degrees:
        return math.nan
    return math.sqrt(sum(square * weight for square, weight in weights) / degrees)
