"""What the rows of tables get besides their numbers: labels of models and drafts, and ranks.

Every function takes a table's frame and its analysis, and returns the frame with more columns; to
do it again changes nothing. The orders of tables and figures are those of the ranks: models as in
`Analysis.models` (MoE first, then by size), drafts as in `drafts`, targets without one before them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from specmoe.analysis.drafts import by_model
from specmoe.audit.checks import ALL
from specmoe.config.block import NO_DRAFT
from specmoe.config.engines import without_digits
from specmoe.config.methods import BY_TYPE, METHODS
from specmoe.config.study import CELLS

if TYPE_CHECKING:
    from specmoe.analysis.registry import Analysis

_SIZES = [
    *("parameters_total", "parameters_active", "size_bytes"),
    *("type", "in_cache", "constructed"),
]
_PROTOCOL_WORDS = {"paired": "llama-server", "published": "the study's commands"}


def drafts(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add rank: by method; draft models in the order of models, then by label."""
    models, order = _rank(analysis), list(METHODS)

    def key(row: Any) -> tuple[Any, ...]:
        place = order.index(BY_TYPE[row.method])
        return place, models.get(row.draft_model, len(models)), row.label

    ranked = sorted(frame.itertuples(), key=key)
    ranks = {row.draft: rank for rank, row in enumerate(ranked)}
    return frame.assign(rank=frame["draft"].map(ranks))


def targets(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add label, family, sizes and target_rank of the target."""
    return _sized(_of_target(frame, analysis), analysis)


def cells(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add label (also as target_label), family, target_rank, draft_label and draft_rank."""
    frame = draft_labels(_of_target(frame, analysis), analysis)
    ranks = frame["draft"].map(analysis.drafts.set_index("draft")["rank"])
    return frame.assign(
        target_label=frame["label"], draft_rank=ranks.where(frame["draft"] != NO_DRAFT, -1)
    )


def sized_cells(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `cells` does, and the sizes of the target."""
    return _sized(cells(frame, analysis), analysis)


def series(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `cells` and `in_series` do."""
    return in_series(cells(frame, analysis))


def in_series(
    frame: pd.DataFrame, once: Sequence[str] = ("target", "draft", "gamma")
) -> pd.DataFrame:
    """Return cells with `series`, which tells apart what a figure draws as one line.

    That is the target, and the suite too where two suites measured the same of what a figure can
    show `once`; `label` then names the suite.
    """
    suites = frame.groupby([*once])["suite"].transform("nunique")
    shared = frame["target"].isin(frame.loc[suites.gt(1), "target"])
    with_suite = frame["target_label"] + " (suite " + frame["suite"] + ")"
    return frame.assign(
        series=frame["target"].where(~shared, frame["target"] + " " + frame["suite"]),
        label=frame["target_label"].where(~shared, with_suite),
    ).reset_index(drop=True)


def networks(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `sized_cells` does; `series` has one suite, network, draft and γ.

    `label` names the suite and network.
    """
    frame = sized_cells(frame, analysis)
    several = frame["suite"].nunique() > 1
    label = frame["network"] + (" (suite " + frame["suite"] + ")" if several else "")
    named = label + " " + frame["draft"] + " " + frame["gamma"].astype(str)
    return frame.assign(label=label, series=named)


def methods(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `series` does, and way, which the rows of a series and method share."""
    frame = series(frame, analysis)
    return frame.assign(way=frame["series"] + " " + frame["method"])


def positions(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `series` does, and drafter, the label of what drafts without its parameters."""
    drafter = frame["draft"].map(analysis.drafts.set_index("draft")["drafter"])
    return series(frame, analysis).assign(drafter=drafter.astype(object).to_numpy())


def loads(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add columns of the target, which is one whatever the requests at once.

    label and target_label, without the number of requests; setting, words for what drafts and how;
    series, the target and its suite; line, the series and the setting.
    """
    frame = cells(frame, analysis)
    of_target = frame.groupby("of_target")
    where = (" (suite " + frame["suite"] + ")").where(
        of_target["suite"].transform("nunique") > 1, ""
    )
    by_suite = frame["of_target"] + " " + frame["suite"]
    setting = _setting(frame, "gamma") + _imposed(frame)
    return frame.assign(
        label=frame["of_label"] + where,
        target_label=frame["of_label"] + where,
        target_rank=of_target["target_rank"].transform("min"),
        setting=setting,
        series=by_suite,
        line=by_suite + " " + setting,
    )


def twins(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `series` does; dense_label and dense_rank; setting, words for what drafts."""
    frame = _of_dense(series(frame, analysis), analysis)
    return frame.assign(setting=_setting(frame, "gammas") + _imposed(frame))


def twin_passes(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add label, family and rank of the model; dense_label, dense_rank; is_dense."""
    models = analysis.models.set_index("model")
    named = {column: frame["model"].map(models[column]) for column in ("label", "family")}
    ranks = frame["model"].map(_rank(analysis))
    frame = frame.assign(**named, rank=ranks, is_dense=frame["model"] == frame["dense"])
    return _of_dense(frame, analysis)


def pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `cells` does, and `series`: the target, and the draft too where it has several.

    `label` then names the draft.
    """
    frame = cells(frame, analysis)
    several = frame.groupby("target")["draft"].transform("nunique").gt(1)
    label = frame["target_label"]
    return frame.assign(
        label=label.where(~several, label + ", draft " + frame["draft_label"]),
        series=frame["target"].where(~several, frame["target"] + " " + frame["draft"]),
    )


def passes(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `pairs` does; gamma, whose rounds have the width, and what `round_costs` has of it.

    Null where no γ has.
    """
    costs, keys = analysis.round_costs, ["protocol", "engine", "target", "draft", "gamma"]
    more = costs.columns.difference(keys)
    frame = frame.drop(columns=more, errors="ignore").assign(gamma=frame["width"] - 1)
    return pairs(frame.merge(costs, how="left", on=keys), analysis)


def ceilings(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `pairs` does, and printed, the speedup that the study prints of a cell of texts.

    Null in other campaigns.
    """
    frame = pairs(frame, analysis)
    if analysis.campaign["source"].iloc[0] != "published":
        return frame.assign(printed=np.nan)
    stated = analysis.comparison
    stated = stated[stated["source"] == CELLS]
    printed = dict(zip(stated["what"], stated["printed"], strict=True))
    names = "speedup " + frame["target"] + " " + frame["draft"] + " " + frame["gamma"].astype(str)
    of_texts = ~frame["suite"].isin(analysis.sweep["suite"])
    return frame.assign(printed=names.map(printed).where(of_texts))


def worst(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add the labels of the worst prediction's target and draft."""
    return frame.assign(
        worst_target_label=frame["worst_target"].map(_label(analysis)),
        worst_draft_label=frame["worst_draft"].map(_draft_label(analysis)),
    )


def draft_labels(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add draft_label."""
    return frame.assign(draft_label=frame["draft"].map(_draft_label(analysis)).astype(object))


def advice(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `targets` does, draft_label, and by_model: whether a draft model drafts."""
    frame = draft_labels(targets(frame, analysis), analysis)
    return frame.assign(by_model=by_model(frame))


def audited(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add whole (the row of all runs), target_rank and draft_rank."""
    ranks = analysis.drafts.set_index("draft")["rank"].to_dict() | {NO_DRAFT: -1}
    return frame.assign(
        whole=frame["target"] == ALL,
        target_rank=frame["target"].map(_rank(analysis)),
        draft_rank=frame["draft"].map(ranks),
    )


def ways(frame: pd.DataFrame, _: "Analysis") -> pd.DataFrame:
    """Add way, words for protocol and engine."""
    return frame.assign(way=way_words(frame))


def way_words(frame: pd.DataFrame) -> "pd.Series[str]":
    """Return words for the protocol and engine of each row."""
    return frame["protocol"].map(_PROTOCOL_WORDS) + ", " + frame["engine"].map(without_digits)


def _of_target(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    families = analysis.models.set_index("model")["family"]
    return frame.assign(
        label=frame["target"].map(_label(analysis)),
        family=frame["target"].map(families),
        target_rank=frame["target"].map(_rank(analysis)),
    )


def _sized(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    models = analysis.models.set_index("model")
    return frame.assign(**{column: frame["target"].map(models[column]) for column in _SIZES})


def _of_dense(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    return frame.assign(
        dense_label=frame["dense"].map(_label(analysis)),
        dense_rank=frame["dense"].map(_rank(analysis)),
    )


def _label(analysis: "Analysis") -> "pd.Series[str]":
    return analysis.models.set_index("model")["label"]


def _draft_label(analysis: "Analysis") -> "pd.Series[str]":
    return analysis.drafts.set_index("draft")["label"].astype(object)


def _rank(analysis: "Analysis") -> dict[str, int]:
    return {model: rank for rank, model in enumerate(analysis.models["model"])}


def _setting(frame: pd.DataFrame, gammas: str) -> "pd.Series[str]":
    return frame["draft_label"] + ", γ = " + frame[gammas].astype(str)


def _imposed(frame: pd.DataFrame) -> "pd.Series[str]":
    return frame["imposed_acceptance"].map(
        lambda share: "" if pd.isna(share) else f", {100 * share:g} % imposed"
    )
