"""Words for sets of prompts, and what is fastest on those that do not answer.

Speedups on code and on prose are no rivals, so a target's answer is about one set of prompts (see
`advice`). Every text that has an answer says which, and what is fastest on the other sets.
"""

from specmoe.analysis.advice import Standing
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
