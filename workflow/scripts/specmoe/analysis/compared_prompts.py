"""What an answer compares: settings on the same prompts; and what others gain on theirs.

Speedups on code and on prose are no rivals, so a target's answer is about one set of prompts (see
`advice`). Every text that has an answer says which, and what is fastest on the other sets.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from specmoe.analysis.advice import Standing
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.runs.disturbed import DISTURBED

_NAMED = 8


def prompt_words(prompts: str) -> str:
    """Return words for a set of prompts, by their ids in one text; many are only counted."""
    count = len(prompts.split(", "))
    return f"{count} prompts" if count > _NAMED else prompts


def on_other_prompts(analysis: Analysis) -> dict[str, list[Record]]:
    """Return, by target, the fastest setting on each set of prompts that does not answer.

    Added to the columns of `advice_settings`: settings, how many are compared.
    """
    settings = analysis.advice_settings
    answering = analysis.advice.set_index("target")["prompt_set"].to_dict()
    found: dict[str, list[Record]] = {}
    for (target, prompts), own in settings.groupby(["target", "prompt_set"], sort=False):
        counted = own[~own["standing"].isin([Standing.MARKED, Standing.IDLE])]
        if prompts != answering.get(target) and len(counted):
            best = records(counted[counted["standing"] == Standing.BEST])[0]
            found.setdefault(str(target), []).append(best | {"settings": len(counted)})
    return found


def odd_share(row: Mapping[Any, Any]) -> str:
    """Return words for what the audit's marks take from a setting's numbers; empty if nothing."""
    parts = []
    if row["marked"]:
        parts.append(
            f"{row['marked']} of {row['pairs']} pairs left out ({row['marked'] / row['pairs']:.0%},"
            f" on {prompt_words(row['marked_prompts'])}): the audit marks them"
        )
    if row["odd_prompts"]:
        sent = len(row["prompt_set"].split(", "))
        odd = len(row["odd_prompts"].split(", "))
        parts.append(
            f"{odd} of {sent} prompts left out ({prompt_words(row['odd_prompts'])}): a setting has"
            " no pair left on them"
        )
    return "; ".join(parts)


def excluded_share(row: Mapping[Any, Any]) -> str:
    """Return words for the pairs that the machine disturbed; empty if it disturbed none."""
    if pd.isna(row["excluded"]):
        return ""
    return f"{row['excluded']} of {row['pairs']} pairs left out: {DISTURBED}"
