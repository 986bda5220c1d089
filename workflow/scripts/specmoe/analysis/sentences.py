"""Sentences on prompts, and on experts beside dense twins.

Speedups on code and on prose are no rivals, so a target's answer is about one set of prompts (see
`advice`). Every text that has an answer says which, and what is fastest on the other sets.
"""

from math import isnan

from specmoe.analysis.advice import Standing
from specmoe.analysis.filters import told_twins
from specmoe.analysis.number_text import fixed, measured_in
from specmoe.analysis.registry import Analysis, Record, records

_NAMED_PROMPTS = 8


def prompt_words(prompts: str) -> str:
    """Return words for a set of prompts, by their ids in one text; many are only counted."""
    count = len(prompts.split(", "))
    return f"{count} prompts" if count > _NAMED_PROMPTS else prompts


def on_other_prompts(analysis: Analysis) -> dict[str, list[Record]]:
    """Return, by target, the fastest setting on each set of prompts that does not answer.

    Added to the columns of `advice_settings`: settings, how many are compared.
    """
    settings = analysis.advice_settings
    answering = analysis.advice.set_index("target")["prompt_set"].to_dict()
    found: dict[str, list[Record]] = {}
    for (target, prompts), own in settings.groupby(["target", "prompt_set"], sort=False):
        compared = own[~own["standing"].isin([Standing.MARKED, Standing.IDLE])]
        if prompts != answering.get(target) and len(compared):
            best = records(compared[compared["standing"] == Standing.BEST])[0]
            found.setdefault(str(target), []).append(best | {"settings": len(compared)})
    return found


def describe_twins(analysis: Analysis) -> list[str]:
    """Return a sentence on each MoE beside its dense twin; none where there are no twins."""
    return [_beside_twin(row) for row in records(told_twins(analysis))]


def _beside_twin(row: Record) -> str:
    own, dense = (fixed(100 * row[key]) for key in ("acceptance_rate", "dense_acceptance"))
    accepted = f"{own} % of the drafted tokens accepted, {dense} % by the dense twin"
    if isnan(row["acceptance_difference"]):
        accepted = "nothing drafted"
    same = row["same_tokens"]
    equal = "" if isnan(same) else f", with equal texts in {fixed(100 * same, 0)} % of the pairs"
    return (
        f"With {row['setting']} ({accepted}), {row['target_label']} has"
        f" {measured_in(row, 'ratio', ratio=False)} times the speedup of {row['dense_label']}:"
        f" {fixed(row['speedup'], 2)} against {fixed(row['dense_speedup'], 2)}{equal}."
    )
