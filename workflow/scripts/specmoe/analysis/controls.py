"""Controls: cells whose outcome is known beforehand, measured to check a campaign.

A control says something about the campaign, and nothing about a draft that one would use.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import pandas as pd

from specmoe.config.methods import METHODS, Method
from specmoe.models.card import ModelCard

_BY_MODEL = METHODS[Method.DRAFT].engine


class Control(StrEnum):
    """What makes a cell a control, if anything."""

    ITSELF = "itself"
    UNRELATED = "unrelated"
    NONE = ""


def with_controls(
    cells: pd.DataFrame, unrelated: Collection[str], cards: Mapping[str, ModelCard]
) -> pd.DataFrame:
    """Return cells (columns target, method and draft_model) with `control`, a `Control`'s value.

    `unrelated` are the drafts that know nothing of any target, `cards` the models' by id: a file
    under another name is the same model. A frame without rows stays as it is.
    """
    if cells.empty:
        return cells
    kinds = [
        _kind(target, draft, unrelated, cards) if method == _BY_MODEL else Control.NONE
        for target, method, draft in cells[["target", "method", "draft_model"]].itertuples(
            index=False
        )
    ]
    return cells.assign(control=[kind.value for kind in kinds])


def _kind(
    target: str, draft: str, unrelated: Collection[str], cards: Mapping[str, ModelCard]
) -> Control:
    ours, theirs = (cards[model].sha256 if model in cards else None for model in (target, draft))
    if draft == target or (ours is not None and ours == theirs):
        return Control.ITSELF
    return Control.UNRELATED if draft in unrelated else Control.NONE
