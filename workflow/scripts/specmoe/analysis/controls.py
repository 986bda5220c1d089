"""Controls: settings whose outcome is known beforehand, which check a campaign.

They say nothing about a draft model that one would use.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import numpy as np
import pandas as pd

from specmoe.config.methods import METHODS, Method
from specmoe.models.info import ModelInfo


class Control(StrEnum):
    """What makes a setting a control: its draft model is the target, or knows nothing of it."""

    SELF = "self"
    UNRELATED = "unrelated"
    NONE = ""


def with_controls(
    settings: pd.DataFrame, unrelated: Collection[str], infos: Mapping[str, ModelInfo]
) -> pd.DataFrame:
    """Return settings, or runs, with `control`, a `Control`'s value.

    They have the columns target, method and draft_model. `unrelated` are the draft models that know
    nothing of any target, `infos` the models' by id: a file under another name is the same model.
    """
    digests = {model: info.sha256 for model, info in infos.items()}
    target, draft = settings["target"], settings["draft_model"]
    same = target.map(digests).notna() & (target.map(digests) == draft.map(digests))
    control = np.where(draft.isin(unrelated), Control.UNRELATED.value, Control.NONE.value)
    control = np.where(same | (draft == target), Control.SELF.value, control)
    control = np.where(by_model(settings), control, Control.NONE.value)
    return settings.assign(control=control.astype(object))


def by_model(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows are of a draft model; heads, MTP and n-grams are others."""
    return frame["method"] == METHODS[Method.DRAFT].engine


def is_no_control(settings: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows of `with_controls` are no controls."""
    return settings["control"] == Control.NONE
