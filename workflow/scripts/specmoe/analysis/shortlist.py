"""Which settings of a campaign are worth measuring, by what is predicted of them.

A draft's reading of the texts that targets wrote alone gives the rounds of every setting, and
passes that were timed once give what rounds take (`gamma_curves`). What lies clearly behind the
best setting of its target, or clearly below 1, cannot become the answer. It is left out; the others
are measured as ever. The choice uses nothing that the answer rests on, so the chance of a wrong
*on* is that of the measured settings alone. A setting that gains may be left out, as rarely as
`statistics.confidence` says (tests/planted_shortlists.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

import pandas as pd

from specmoe.analysis.cost_fit import timed_costs
from specmoe.analysis.gamma_curves import Pair, Predicted, texts_read
from specmoe.analysis.intervals import MANY, student_quantile
from specmoe.analysis.number_text import measured
from specmoe.audit.reading import Reading, ReadingKey
from specmoe.config.block import Block
from specmoe.config.matrix import comparison_of, reads_texts, setting_of
from specmoe.config.schema import Config, Statistics
from specmoe.config.shortlist import is_control
from specmoe.models.card import ModelCard
from specmoe.words import counted


@dataclass(frozen=True)
class Setting:
    """A setting that may answer for its target, and what is predicted of it; None: nothing is."""

    name: str  # see `setting_of`
    target: str  # with its options
    predicted: Predicted | None


def predict_settings(
    config: Config,
    contenders: Iterable[Block],
    runs: pd.DataFrame,
    readings: Mapping[ReadingKey, list[Reading]],
    pass_times: pd.DataFrame,
    cards: Mapping[str, ModelCard],
) -> list[Setting]:
    """Return the settings of the first repeat of `contenders`.

    `runs` are those of `config.shortlist.alone_blocks`, `cards` the models' by id. Nothing is
    predicted of what no draft model drafts alone and greedily, of passes that were not timed,
    and of drafts that are given up where they are short.
    """
    statistics = config.statistics

    def pair_of(block: Block) -> Pair | None:
        """Return the texts that a block's draft has read, and what their rounds take."""
        draft, replays = str(block.draft_model), cards[block.target].replays
        model = timed_costs(pass_times, block.target, draft, statistics, replays=replays)
        own = runs[(runs["suite"] == block.suite) & (runs["target"] == block.target_setting)]
        texts = texts_read(own, draft, readings, replays)
        return Pair(texts, model, statistics.prediction_error) if texts and model else None

    settings = []
    for block in contenders:
        if block.repeat > 0:
            continue
        pair = pair_of(block) if reads_texts(config, block) else None
        for side in block.sides:
            if side.speculates and side.imposed_acceptance is None:
                known = pair if pair and not side.n_min else None
                predicted = known and known.of_length(side.gamma, side.p_min or 0.0)
                settings.append(Setting(setting_of(block, side), block.target_setting, predicted))
    return settings


def worth_measuring(settings: Iterable[Setting], statistics: Statistics) -> set[str]:
    """Return the names of the settings to measure.

    Of each target: what nothing is predicted of, the setting with the highest prediction, and each
    that may be faster than that one and than the target alone, for as many settings as there are.
    """
    settings = list(settings)
    kept = {one.name for one in settings if one.predicted is None}
    for target in {one.target for one in settings}:
        own = {
            one.name: one.predicted.speedup
            for one in settings
            if one.predicted and one.target == target
        }
        if not own:
            continue
        level = 1 - (1 - statistics.confidence) / len(own)
        reach = statistics.prediction_error * student_quantile(MANY, level)
        best = max(own, key=lambda name: own[name])
        least = max(own[best] * exp(-reach * sqrt(2)), exp(-reach))
        kept |= {best, *(name for name, speedup in own.items() if speedup >= least)}
    return kept


def overlay_of(config: Config, blocks: Iterable[Block], kept: set[str]) -> dict[str, Any]:
    """Return the section `campaign` that measures the settings `kept`, and controls, alone.

    `blocks` are the campaign's.
    """
    left_out, suites = dict.fromkeys(config.campaign.left_out), set()
    for block in blocks:
        settings = [setting_of(block, side) for side in block.sides if side.speculates]
        measured = (
            settings if is_control(config, block) else [one for one in settings if one in kept]
        )
        if measured:
            suites.add(block.suite)
            left_out |= dict.fromkeys(one for one in settings if one not in measured)
        else:
            left_out[comparison_of(block.block)] = None
    return {
        "name": f"{config.campaign.name}-shortlist",
        "suites": [name for name in config.campaign.suites if name in suites],
        "left_out": [name for name in left_out if name.partition("/")[0] in suites],
    }


def describe_shortlist(settings: Iterable[Setting], kept: set[str], confidence: float) -> str:
    """Return what is predicted of each setting, and whether it is worth measuring."""
    settings = list(settings)
    predicted = [(one, one.predicted) for one in settings if one.predicted]
    lines = [
        f"{len(kept)} of {counted(len(settings), 'setting')} are worth measuring. Predicted"
        f" speedups, with {confidence:.0%} intervals:"
    ]
    for one, known in sorted(predicted, key=lambda pair: (pair[0].target, -pair[1].speedup)):
        verdict = "measure" if one.name in kept else "leave  "
        speedup = measured(known.speedup, known.low, known.high)
        lines.append(f"  {verdict}  {speedup}  {one.name}")
    if others := len(settings) - len(predicted):
        lines.append(
            f"Nothing is predicted of {counted(others, 'other')}, so all are measured: what drafts"
            " is no model, or the machine disturbed the timing of a model's passes."
        )
    return "\n".join(lines) + "\n"
