"""A speculation profile of a campaign: how far drafts held, by position.

Acceptance is a matter of the models and the texts, and what a round costs one of the machine. So a
profile that was measured on one machine can be imposed on another (`suites.*.imposed_profiles`) to
see what drafting would gain there. `config.profiles` describes what is read of the format.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.rounds import sum_lists
from specmoe.analysis.spread import cell_id
from specmoe.analysis.summaries import CELL
from specmoe.config.block import NO_DRAFT
from specmoe.config.profiles import FORMAT


def speculation_profile(runs: pd.DataFrame, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile of the settings whose rounds were logged.

    `runs` are those of `build.usual_runs`, `about` is what the profile says of where they come
    from. A setting has its models with their digests, method, γ, the share of drafted tokens at
    each position that were accepted where all before them were (`conditional`), their products
    (`joint`), and how many rounds accepted 0, 1, ... tokens (`accepted_lengths`). A setting whose
    prompts have categories is there again for each of them.
    """
    counted = runs[(runs["draft"] != NO_DRAFT) & runs["tried_per_position"].notna()]
    settings: list[dict[str, Any]] = []
    for _, members in counted.groupby(CELL):
        setting = cell_id(*members.iloc[0][CELL])
        settings += _setting(setting, None, members)
        for category, its in members[members["category"].notna()].groupby("category"):
            settings += _setting(f"{setting}/{category}", str(category), its)
    return {"format": FORMAT, **about, "settings": settings}


def _setting(name: str, category: str | None, runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    tried = sum_lists(runs["tried_per_position"])
    accepted = sum_lists(runs["accepted_per_position"])
    lengths = sum_lists(runs["accepted_lengths"])
    rounds = int(lengths.sum())
    known = int((tried > 0).sum())
    if not known:
        return  # nothing was drafted
    conditional = accepted[:known] / tried[:known]
    joint = np.cumprod(conditional)
    if conditional[-1] == 0:
        # What follows a position that was never accepted is not accepted either.
        joint = np.append(joint, np.zeros(len(tried) - known))
    first = runs.iloc[0]
    keys = ["suite", "target", "target_sha256", "method", "draft", "draft_model", "draft_sha256"]
    yield {
        "setting": name,
        **{key: None if pd.isna(first[key]) else str(first[key]) for key in keys},
        "gamma": int(first["gamma"]),
        "temperature": float(first["temperature"]),
        "category": category,
        "prompts": int(runs["prompt"].nunique()),
        "runs": len(runs),
        "rounds": rounds,
        "mean_accepted_length": round(1 + float(accepted.sum()) / rounds, 6),
        "tried": [int(count) for count in tried],
        "accepted": [int(count) for count in accepted],
        "conditional": [round(float(share), 6) for share in conditional],
        "joint": [round(float(share), 6) for share in joint],
        "accepted_lengths": [int(count) for count in lengths],
    }
