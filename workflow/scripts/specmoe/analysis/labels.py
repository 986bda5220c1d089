"""Names of what tables show: controls, labels of models and drafts, and ranks.

Functions of a table's frame and its analysis return the frame with more columns; to call one again
changes nothing. Tables and figures are in the order of the ranks: models as in `Analysis.models`
(MoE first, then by size), drafts as in `drafts`, targets without one before them.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from specmoe.config.block import NO_DRAFT
from specmoe.config.engines import without_digits
from specmoe.config.factors import FACTORS
from specmoe.config.methods import BY_TYPE, METHODS, PARAMETERS, Method, draft_label
from specmoe.models.info import ModelInfo

if TYPE_CHECKING:
    from specmoe.analysis.registry import Analysis

_OF_TARGET = ["family", "parameters_total", "parameters_active", "size_bytes", "type"]
_OF_TARGET += ["in_cache", "constructed"]
_PROTOCOL_WORDS = {"paired": "llama-server", "study": "the study's commands"}


class Control(StrEnum):
    """What makes a setting a control: one whose outcome is known beforehand, to check a campaign.

    It says nothing about a draft model that one would use.
    """

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


def without_controls(settings: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `with_controls` without its controls."""
    return settings if settings.empty else settings[is_no_control(settings)]


def list_drafts(runs: pd.DataFrame, label_of: Callable[[str], str]) -> pd.DataFrame:
    """Return a row for each draft model of the runs, in their order.

    `label_of` returns a model's label. Columns: draft, label, drafter (the label without
    parameters), method (the engine's types), draft_model (null for a method that loads no file). A
    file is named if it is a draft model, or if a target has the same method with another or none.
    """
    drafting = runs[runs["draft"] != NO_DRAFT]
    files = drafting.groupby(["method", "target"])["draft_model"].nunique(dropna=False)
    most = files.groupby("method").max() if len(files) else files
    rows = []
    for row in drafting.drop_duplicates("draft").to_dict("records"):
        method, file = BY_TYPE[row["method"]], row["draft_model"]
        named = isinstance(file, str) and (method == Method.DRAFT or most[row["method"]] > 1)
        file_label = label_of(file) if named else None
        known = {key: row[key] for key in PARAMETERS if pd.notna(row.get(key))}
        label, drafter = (draft_label(method, file_label, given) for given in (known, {}))
        rows.append((row["draft"], label, drafter, row["method"], file))
    return pd.DataFrame(rows, columns=["draft", "label", "drafter", "method", "draft_model"])


def drafts(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add rank: by method; draft models in the order of models, then by label."""
    method = frame["method"].map(BY_TYPE).map([*METHODS].index)
    model = _models(frame["draft_model"], analysis)["rank"]  # null is last
    ordered = frame.assign(method=method, model=model).sort_values(["method", "model", "label"])
    return frame.assign(rank=pd.Series(range(len(frame)), ordered.index))


def joined(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what models, drafts and suites say of the target, draft and suite of each row.

    Of the target: label, also as target_label, family, sizes, target_rank; of the draft model:
    draft_label, drafter (the label without parameters), draft_rank; of the suite: factor.
    """
    if "target" in frame:
        models = _models(frame["target"], analysis)
        frame = frame.assign(**models[["label", *_OF_TARGET]])
        frame = frame.assign(target_label=models["label"], target_rank=models["rank"])
    if "draft" in frame:
        draft, drafts = frame["draft"], analysis.drafts.set_index("draft")
        frame = frame.assign(
            draft_label=draft.map(drafts["label"]).astype(object),
            drafter=draft.map(drafts["drafter"]).astype(object),
            draft_rank=draft.map(drafts["rank"].to_dict() | {NO_DRAFT: -1}),
        )
    if "suite" in frame:
        suites = analysis.suites.set_index("suite")
        frame = frame.assign(factor=frame["suite"].map(suites["factor"]))
    return frame


def series(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` and `in_series` do."""
    return in_series(joined(frame, analysis))


def in_series(frame: pd.DataFrame) -> pd.DataFrame:
    """Return settings with `series`, which tells apart what a figure draws as one line.

    That is the target, and the suite too where two measured the same; `label` then names the suite.
    """
    suites = frame.groupby(["target", "draft", "gamma"])["suite"].transform("nunique")
    shared = frame["target"].isin(frame.loc[suites.gt(1), "target"])
    with_suite = frame["target_label"] + " (suite " + frame["suite"] + ")"
    return frame.assign(
        series=frame["target"].where(~shared, frame["target"] + " " + frame["suite"]),
        label=frame["target_label"].where(~shared, with_suite),
    ).reset_index(drop=True)


def levels(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` does; setting (draft and γ in words); factor_label, and varied, a heading.

    series: the suite and target; label: the target, and the suite where several varied something;
    level_rank: the level itself if all of the suite are numbers, else its place among them.
    """
    frame = joined(frame, analysis)
    numbers = pd.to_numeric(frame["level"], errors="coerce")
    numeric = numbers.notna().groupby(frame["suite"]).transform("all")
    # No further words of the engine come first.
    words = pd.Series([FACTORS["engine_args"].text([]), *frame["level"]], dtype=object)
    places = pd.Series(pd.factorize(words)[0][1:], index=frame.index)
    several = frame.groupby("target")["suite"].transform("nunique") > 1
    label = frame["target_label"]
    units = {name: factor.unit for name, factor in FACTORS.items()}
    units["prompt_tokens"] = analysis.campaign["length_unit"].iloc[0]
    headings = {
        name: f"{FACTORS[name].label} ({unit})".removesuffix(" ()") for name, unit in units.items()
    }
    factors = frame["factor"].map(headings)
    return frame.assign(
        setting=_setting(frame, "gamma"),
        factor_label=factors,
        varied="Suite " + frame["suite"] + ": " + factors,
        series=frame["suite"] + " " + frame["target"],
        label=label.where(~several, label + " (suite " + frame["suite"] + ")"),
        level_rank=numbers.where(numeric, places),
    )


def upcycled_pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `series` does; dense_label and dense_rank; setting (draft and γ in words)."""
    frame = _with_dense(series(frame, analysis), analysis)
    forced = frame["forced_acceptance"].map(
        lambda share: "" if pd.isna(share) else f", {100 * share:g} % forced"
    )
    return frame.assign(setting=_setting(frame, "gammas") + forced)


def pass_times(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add label, family and rank of the model; dense_label, dense_rank; is_dense."""
    frame = frame.assign(**_models(frame["model"], analysis)[["label", "family", "rank"]])
    return _with_dense(frame.assign(is_dense=frame["model"] == frame["dense"]), analysis)


def pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` does, and `series`: the target, and the draft model if it has several.

    `label` then names the draft model.
    """
    frame = joined(frame, analysis)
    several = frame.groupby("target")["draft"].transform("nunique").gt(1)
    label = frame["target_label"]
    return frame.assign(
        label=label.where(~several, label + ", draft " + frame["draft_label"]),
        series=frame["target"].where(~several, frame["target"] + " " + frame["draft"]),
    )


def protocols(frame: pd.DataFrame, _: "Analysis | None" = None) -> pd.DataFrame:
    """Add measured_by: protocol and engine in words."""
    engine = frame["engine"].map(without_digits)
    return frame.assign(measured_by=frame["protocol"].map(_PROTOCOL_WORDS) + ", " + engine)


def _with_dense(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    models = _models(frame["dense"], analysis)
    return frame.assign(dense_label=models["label"], dense_rank=models["rank"])


def _models(names: "pd.Series[str]", analysis: "Analysis") -> pd.DataFrame:
    """Return the row of each of these models, with its rank; null for others."""
    models = analysis.models.assign(rank=range(len(analysis.models))).set_index("model")
    return models.reindex(names).set_axis(names.index)


def _setting(frame: pd.DataFrame, gammas: str) -> "pd.Series[str]":
    return frame["draft_label"] + ", γ = " + frame[gammas].astype(str)
