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
    """Return cells, or runs, with `control`, a `Control`'s value.

    They have the columns target, method and draft_model. `unrelated` are the drafts that know
    nothing of any target, `cards` the models' by id: a file under another name is the same model.
    """
    kinds = [
        _kind(target, draft, unrelated, cards) if method == _BY_MODEL else Control.NONE
        for target, method, draft in cells[["target", "method", "draft_model"]].itertuples(
            index=False
        )
    ]
    return cells.assign(control=[kind.value for kind in kinds])


def is_no_control(cells: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether each of `with_controls`'s rows is none."""
    return cells["control"] == Control.NONE


def without_controls(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `with_controls` but for controls; a frame without rows as it is."""
    return cells if cells.empty else cells[is_no_control(cells)]


def _kind(
    target: str, draft: str, unrelated: Collection[str], cards: Mapping[str, ModelCard]
) -> Control:
    ours, theirs = (cards[model].sha256 if model in cards else None for model in (target, draft))
    if draft == target or (ours is not None and ours == theirs):
        return Control.ITSELF
    return Control.UNRELATED if draft in unrelated else Control.NONE
