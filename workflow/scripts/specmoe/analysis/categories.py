"""What workloads show: speedups by category of prompt, and how the texts end.

A question about other prompts of a category has its prompts as what varies, see
`intervals.interval_over_prompts`.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import interval_over_prompts, ratio_of_prompts
from specmoe.analysis.summaries import CELL, summarise_cells
from specmoe.config.block import NO_DRAFT, Stop
from specmoe.config.schema import Statistics

WORKLOAD = [*CELL, "workload"]
_NGRAM = 4  # tokens

GAP_COLUMNS = [*WORKLOAD, "higher", "lower", "ratio", "ratio_low", "ratio_high", "pairs"]
ENDING_COLUMNS = [
    *(*WORKLOAD, "stop", "prompts", "runs", "generated", "shortest", "longest"),
    *("ended", "at_once", "past_end", "past_end_runs", "repetition", "same_length"),
]


def compare_categories(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per cell, workload and category: columns of `summarise_cells`, and prompts.

    `compared` is `with_speedups`'s frame. speedup_low and speedup_high are those of the interval
    for other prompts of the category; null with a single block or a single prompt. prompts counts
    those with a speedup. Without rows where no prompt has a category.
    """
    members = compared[compared["category"].notna()]
    if members.empty:
        return pd.DataFrame()
    keys = [*WORKLOAD, "category"]
    cells = summarise_cells(members, settings, keys)
    groups = {key: its for key, its in members.groupby(keys)}
    own = [groups[key] for key in cells[keys].itertuples(index=False, name=None)]
    ends = [interval_over_prompts(its, settings.confidence) for its in own]
    return cells.assign(
        prompts=[its["prompt"].nunique() for its in own],
        speedup_low=[end.low for end in ends],
        speedup_high=[end.high for end in ends],
    )


def gaps_between_categories(compared: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return the pairs of categories whose speedups are shown to differ, the widest gap first.

    Columns: GAP_COLUMNS. ratio is the higher speedup over the lower, with the interval of
    `ratio_of_prompts`; Bonferroni's share of the level makes the intervals of all `pairs` of a
    cell's categories hold at once. Categories of a single prompt have no pair. A cell with several
    categories and no shown gap has one row, whose ratio is null.
    """
    rows = []
    members = compared[compared["category"].notna()]
    for cell, its in members.groupby(WORKLOAD):
        of_category = {
            str(name): own for name, own in its.groupby("category") if own["prompt"].nunique() > 1
        }
        about = dict(zip(WORKLOAD, cell, strict=True))
        if len(of_category) > 1:
            rows += [about | gap for gap in _gaps(of_category, settings.confidence)]
    return pd.DataFrame(rows, columns=GAP_COLUMNS)


def _gaps(of_category: dict[str, pd.DataFrame], confidence: float) -> list[dict[str, object]]:
    pairs = list(combinations(of_category, 2))
    level = 1 - (1 - confidence) / len(pairs)
    shown = []
    for first, second in pairs:
        ratio = ratio_of_prompts(of_category[first], of_category[second], level)
        higher, lower = (first, second) if ratio.value > 1 else (second, first)
        wide = ratio if ratio.value > 1 else ratio.inverse()
        if wide.low > 1:
            shown.append((higher, lower, wide))
    shown.sort(key=lambda gap: gap[2].value, reverse=True)
    return [
        {"higher": higher, "lower": lower, "pairs": len(pairs)}
        | {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
        for higher, lower, ratio in shown
    ] or [{"pairs": len(pairs)}]


def how_texts_end(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and workload: how long its texts are, and how they end.

    `runs` are those of `build.usual_runs`, targets alone among them. Texts of no workload are left
    out unless they may end before `n_predict` tokens. Columns: ENDING_COLUMNS:

    - prompts, runs: how many; generated: mean tokens; shortest, longest: of any run.
    - ended: share of runs that the target ended; at_once: runs whose first token ended them, which
      have no rate and so no speedup.
    - past_end: share of the generated tokens that are past the target's own end, over the runs of
      which that is known; past_end_runs: their number. Null where it is known of none.
    - repetition: mean of the runs' `repetition`; null where no tokens are known.
    - same_length: share of runs with a draft that are as long as their baselines.
    """
    members = runs[runs["workload"].notna() | runs["stop"].eq(Stop.EOS)]
    lengths = runs.set_index("run")["generated"]
    rows = []
    for cell, its in members.groupby(WORKLOAD, dropna=False):
        known = its[its["past_end"].notna()]
        generated = its["generated"].astype(float)
        baselines = its["baseline"].map(lengths).astype(float)
        repeated = [repetition(tokens) for tokens in its["tokens"] if tokens is not None]
        rows.append(
            dict(zip(WORKLOAD, cell, strict=True))
            | {
                "stop": its["stop"].iloc[0],
                "prompts": its["prompt"].nunique(),
                "runs": len(its),
                "generated": generated.mean(),
                "shortest": int(generated.min()),
                "longest": int(generated.max()),
                "ended": (its["stopped_by"] == Stop.EOS).mean(),
                "at_once": int((generated == 1).sum()),
                "past_end": known["past_end"].sum() / known["generated"].sum()
                if len(known)
                else math.nan,
                "past_end_runs": len(known),
                "repetition": float(np.mean(repeated)) if repeated else math.nan,
                "same_length": math.nan
                if its["draft"].iloc[0] == NO_DRAFT
                else (baselines == generated).mean(),
            }
        )
    return pd.DataFrame(rows, columns=ENDING_COLUMNS)


def repetition(tokens: Sequence[int]) -> float:
    """Return the share of a text's 4-grams of tokens that are repetitions of earlier ones.

    1 - distinct / all, the score `seq-rep-4` of S. Welleck and others, Neural Text Generation with
    Unlikelihood Training, arXiv 1908.04319, section 6. A text of fewer than four tokens repeats
    nothing.
    """
    shifted = [tokens[start:] for start in range(_NGRAM)]
    ngrams = list(zip(*shifted, strict=False))
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0
