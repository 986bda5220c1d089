"""Exclusions: what of a target's settings is compared if pairs are flagged, or lost to other load.

A flagged run must not silence a workload, nor choose the answer. Three rules:

- A run that no valid run can be (`Level.IMPOSSIBLE`) says that its setting measured something else
  than decoding. A bound finds the worst of such runs only, so the whole setting is excluded.
- Suspicious pairs leave. Flags fall on the fastest repeats of a prompt, and blocks are compared at
  the same prompts (`intervals.log_means`), so it does not matter which prompt they fall on. To
  exclude the prompt from all repeats was tried: intervals then hold the truth of those sent less
  often. As flags make the other pairs slower, *off* must hold with the flagged pairs too.
- A setting that has no pair left of a prompt loses nothing else, and the others lose nothing: its
  mean is taken at all prompts, as `at_all_prompts` says. A prompt leaves only if no setting has it.
  To take it from all was tried: one slow setting that lost one prompt moved the best by a tenth.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import additive_model

# Flags select by speed: without the fastest quarter of normal errors their mean is 0.4 deviations
# lower.
MOST_FLAGGED = 0.25
# With fewer of the prompts, what the other settings have there says more than it does itself.
LEAST_PROMPTS = 0.5


def is_excluded(runs: pd.DataFrame, sent: Collection[str]) -> bool:
    """Return whether a setting is excluded for its impossible, flagged or lacking pairs.

    `runs` are its compared ones, with `flagged` and `impossible`; `sent` are the prompts.
    """
    left = runs.loc[~runs["flagged"], "prompt"].nunique()
    too_few = runs["flagged"].mean() > MOST_FLAGGED or left < LEAST_PROMPTS * len(sent)
    return bool(runs["impossible"].any() or too_few)


def at_all_prompts(settings: Mapping[Any, pd.DataFrame]) -> dict[Any, pd.DataFrame]:
    """Return compared runs whose mean speedup is that at all prompts that some setting has.

    Where a setting lacks some, the additive model of settings and prompts, by least squares, says
    how much slower or faster it would be with them: its speedups are shifted by that. What settings
    react to prompts differently is the error of it, in the added column `lacking_error`: for n of N
    prompts it is that deviation times √(1/n - 1/N), and √(S/(S - 1)) with S settings; NaN where
    it has one degree of freedom or none.
    """
    of_prompts = {
        place: runs["speedup"].astype(float).map(math.log).groupby(runs["prompt"]).mean()
        for place, runs in enumerate(settings.values())
    }
    logs = pd.DataFrame(of_prompts).to_numpy(float)
    known, (prompts, among) = ~np.isnan(logs), logs.shape
    shifts, errors = np.zeros(among), np.zeros(among)
    if not known.all():
        effects, _, square, degrees = additive_model(np.nan_to_num(logs), known)
        square = square * among / (among - 1) if degrees > 1 else math.nan
        own_count = known.sum(axis=0)
        shifts = effects.mean() - effects @ known / own_count
        errors = np.where(known.all(axis=0), 0, np.sqrt(square * (1 / own_count - 1 / prompts)))
    return {
        key: runs.assign(speedup=runs["speedup"] * math.exp(shift), lacking_error=error)
        for (key, runs), shift, error in zip(settings.items(), shifts, errors, strict=True)
    }
