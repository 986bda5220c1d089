"""The drafting methods of a campaign: their names, and the controls among them.

A control is a setting whose outcome is known beforehand, measured to check a campaign. It says
nothing about a draft that one would use.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

import pandas as pd

from specmoe.config.block import NO_DRAFT
from specmoe.config.methods import BY_TYPE, METHODS, PARAMETERS, Method, draft_label
from specmoe.models.info import ModelInfo


class Control(StrEnum):
    """What makes a setting a control, if anything."""

    SELF = "self"
    UNRELATED = "unrelated"
    NONE = ""


def with_controls(
    settings: pd.DataFrame, unrelated: Collection[str], infos: Mapping[str, ModelInfo]
) -> pd.DataFrame:
    """Return settings, or runs, with `control`, a `Control`'s value.

    They have the columns target, method and draft_model. `unrelated` are the drafts that know
    nothing of any target, `infos` the models' by id: a file under another name is the same model.
    """

    def kind(target: str, method: str, draft: str) -> Control:
        ours, theirs = (infos[one].sha256 if one in infos else None for one in (target, draft))
        if method != METHODS[Method.DRAFT].engine:
            return Control.NONE
        if draft == target or (ours is not None and ours == theirs):
            return Control.SELF
        return Control.UNRELATED if draft in unrelated else Control.NONE

    rows = settings[["target", "method", "draft_model"]].itertuples(index=False)
    return settings.assign(control=[kind(*row).value for row in rows])


def by_model(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows are of a draft model; heads, MTP and n-grams are others."""
    return frame["method"] == METHODS[Method.DRAFT].engine


def is_no_control(settings: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows of `with_controls` are no controls."""
    return settings["control"] == Control.NONE


def without_controls(settings: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `with_controls` without its controls."""
    return settings if settings.empty else settings[is_no_control(settings)]


def list_drafts(runs: pd.DataFrame, label_of: Callable[[str], str]) -> pd.DataFrame:
    """Return one row per setting of what drafts, in the order of the runs.

    `runs` is `schema.read_runs`'s frame, `label_of` returns a model's label. Columns: draft, label,
    drafter (the label without parameters), method (the engine's types), draft_model (null for a
    method that loads no file).

    A file is named if it is a draft model, or if a target has the same method with another file or
    with none.
    """
    drafting = runs[runs["draft"] != NO_DRAFT]
    files = drafting.groupby(["method", "target"])["draft_model"].nunique(dropna=False)
    most = files.groupby("method").max() if len(files) else files
    rows = []
    for row in drafting.drop_duplicates("draft").to_dict("records"):
        method, file = BY_TYPE[row["method"]], row["draft_model"]
        named = isinstance(file, str) and (method == Method.DRAFT or most[row["method"]] > 1)
        file_label = label_of(file) if named else None
        parameters = {key: row.get(key) for key in PARAMETERS}
        known = {key: value for key, value in parameters.items() if not pd.isna(value)}
        rows.append(
            {
                "draft": row["draft"],
                "label": draft_label(method, file_label, known),
                "drafter": draft_label(method, file_label, {}),
                "method": row["method"],
                "draft_model": file,
            }
        )
    return pd.DataFrame(rows)
