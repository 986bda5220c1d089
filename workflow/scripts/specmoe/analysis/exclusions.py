"""Exclusions: the prompts on which a target's settings are compared if some pairs are flagged.

A flagged run must not silence a workload, nor choose the answer. Three rules:

- A run that no valid run can be (`Level.IMPOSSIBLE`) says that its setting measured something else
  than decoding. A bound finds the worst of such runs only, so the whole setting is excluded.
- Suspicious pairs leave. Flags fall on the fastest repeats of a prompt, and blocks are compared at
  the same prompts (`intervals.log_means`), so it does not matter which prompt they fall on. To
  exclude the prompt from all repeats was tried: intervals then hold the truth of those sent less
  often. As flags make the other pairs slower, *off* must hold with the flagged pairs too.
- A prompt of which some setting has no pair left leaves all settings on the same prompts, so that
  they are ranked on the same ones.
"""

from collections.abc import Mapping, Set
from typing import Any

import pandas as pd

from specmoe.analysis.intervals import mean_speedup
from specmoe.analysis.noise import session_of
from specmoe.analysis.summaries import SETTING, summarise
from specmoe.config.schema import Statistics

# Flags select by speed: without the fastest quarter of normal errors their mean is 0.4 deviations
# lower.
MOST_FLAGGED = 0.25


def find_exclusions(
    settings: Mapping[Any, pd.DataFrame], lost: Mapping[Any, Set[str]]
) -> tuple[set[str], set[Any]]:
    """Return the prompts that leave all settings, and the settings to exclude.

    `settings` has the compared runs of each, with `flagged` and `impossible`; `lost` are the
    prompts that were sent and of which a setting has no pair left. Settings with fewer such
    prompts come first; one that would raise their share above MOST_FLAGGED is excluded, and so is
    one with a larger share of flagged pairs.
    """
    sent = set().union(*(own["prompt"] for own in settings.values()))
    sent = sent.union(*(lost.get(key, ()) for key in settings))
    unusable_of = {
        key: {*lost.get(key, ()), *own["prompt"]} - {*own.loc[~own["flagged"], "prompt"]}
        for key, own in settings.items()
        if not own["impossible"].any() and own["flagged"].mean() <= MOST_FLAGGED
    }
    unusable: set[str] = set()
    excluded = {key for key in settings if key not in unusable_of}
    for key in sorted(unusable_of, key=lambda key: len(unusable_of[key])):
        if len(unusable | unusable_of[key]) > MOST_FLAGGED * len(sent):
            excluded.add(key)
        else:
            unusable |= unusable_of[key]
    return unusable, excluded


def apply_exclusions(
    candidates: pd.DataFrame,
    members: Mapping[Any, pd.DataFrame],
    lost: pd.DataFrame,
    statistics: Statistics,
) -> tuple[pd.DataFrame, dict[Any, pd.DataFrame]]:
    """Return settings with their numbers, and their compared runs, on the prompts that count.

    `candidates` is `summarise`'s frame of `members`, which has them by setting; `lost` are the runs
    that do not count. Added to the settings: unusable_prompts (ids of those that leave all, or
    none); of all their pairs flagged, impossible, and unfiltered_high (the high end that decides);
    excluded_setting, which keeps all its runs.
    """
    if candidates.empty:
        return candidates, dict(members)
    kept, rows = dict(members), []
    without = {
        key: {*own["prompt"]} - {*members[key]["prompt"]}
        for key, own in lost.groupby(SETTING)
        if key in members
    }
    for _, peers in candidates.groupby(["target", "prompt_set"]):
        by_key = peers.set_index(SETTING, drop=False).to_dict("index")
        unusable, excluded = find_exclusions({key: members[key] for key in by_key}, without)
        for key, row in by_key.items():
            own = members[key]
            every = mean_speedup(own).interval(statistics.confidence, 1, session_of(statistics))
            if key not in excluded:
                kept[key] = own[~(own["flagged"] | own["prompt"].isin(unusable))]
                numbers = summarise(kept[key], SETTING, statistics)
                # What was sent stays.
                numbers = numbers.drop(columns=["prompt_set", "excluded", "pairs"])
                row |= numbers.to_dict("records")[0]
            rows.append(
                row
                | {
                    "flagged": int(own["flagged"].sum()),
                    "impossible": int(own["impossible"].sum()),
                    "unfiltered_high": every[1],
                    "excluded_setting": key in excluded,
                    "unusable_prompts": "" if key in excluded else ", ".join(sorted(unusable)),
                }
            )
    return pd.DataFrame(rows), kept
