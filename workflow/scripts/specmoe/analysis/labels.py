"""Labels of models and drafting methods, and the ranks that order rows of tables.

Every function takes a table's frame and its analysis, and returns the frame with more columns; to
do it again changes nothing. The orders of tables and figures are those of the ranks: models as in
`Analysis.models` (MoE first, then by size), drafts as in `drafts`, targets without one before them.
"""

from typing import TYPE_CHECKING, Any

import pandas as pd

from specmoe.config.block import NO_DRAFT
from specmoe.config.engines import without_digits
from specmoe.config.factors import FACTORS
from specmoe.config.methods import BY_TYPE, METHODS

if TYPE_CHECKING:
    from specmoe.analysis.registry import Analysis

_OF_TARGET = ["family", "parameters_total", "parameters_active", "size_bytes", "type"]
_OF_TARGET += ["in_cache", "constructed"]
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


def joined(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what models, drafts and suites say of the target, draft and suite of each row.

    Of the target: label, also as target_label, family, sizes, target_rank; of the draft:
    draft_label, drafter (the label without parameters), draft_rank; of the suite: factor.
    """
    if "target" in frame:
        models = analysis.models.set_index("model")
        ranks = frame["target"].map(_rank(analysis))
        columns = {name: frame["target"].map(models[name]) for name in ["label", *_OF_TARGET]}
        frame = frame.assign(**columns, target_label=columns["label"], target_rank=ranks)
    if "draft" in frame:
        drafts = analysis.drafts.set_index("draft")
        ranks = frame["draft"].map(drafts["rank"].to_dict() | {NO_DRAFT: -1})
        labels = {
            f"draft_{name}".replace("draft_drafter", "drafter"): frame["draft"].map(drafts[name])
            for name in ("label", "drafter")
        }
        frame = frame.assign(
            **{name: label.astype(object) for name, label in labels.items()}, draft_rank=ranks
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
    """Add what `joined` does; setting, words for what drafts; factor_label, and varied, a heading.

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
    factors = frame["factor"].map(
        {
            name: f"{FACTORS[name].label} ({unit})".removesuffix(" ()")
            for name, unit in units.items()
        }
    )
    return frame.assign(
        setting=_setting(frame, "gamma"),
        factor_label=factors,
        varied="Suite " + frame["suite"] + ": " + factors,
        series=frame["suite"] + " " + frame["target"],
        label=label.where(~several, label + " (suite " + frame["suite"] + ")"),
        level_rank=numbers.where(numeric, places),
    )


def upcycled_pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `series` does; dense_label and dense_rank; setting, words for what drafts."""
    frame = _of_dense(series(frame, analysis), analysis)
    forced = frame["forced_acceptance"].map(
        lambda share: "" if pd.isna(share) else f", {100 * share:g} % forced"
    )
    return frame.assign(setting=_setting(frame, "gammas") + forced)


def upcycled_passes(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add label, family and rank of the model; dense_label, dense_rank; is_dense."""
    models = analysis.models.set_index("model")
    named = {column: frame["model"].map(models[column]) for column in ("label", "family")}
    ranks = frame["model"].map(_rank(analysis))
    frame = frame.assign(**named, rank=ranks, is_dense=frame["model"] == frame["dense"])
    return _of_dense(frame, analysis)


def pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` does, and `series`: the target, and the draft too where it has several.

    `label` then names the draft.
    """
    frame = joined(frame, analysis)
    several = frame.groupby("target")["draft"].transform("nunique").gt(1)
    label = frame["target_label"]
    return frame.assign(
        label=label.where(~several, label + ", draft " + frame["draft_label"]),
        series=frame["target"].where(~several, frame["target"] + " " + frame["draft"]),
    )


def protocols(frame: pd.DataFrame, _: "Analysis") -> pd.DataFrame:
    """Add measured_by: words for protocol and engine."""
    return frame.assign(measured_by=way_text(frame))


def way_text(frame: pd.DataFrame) -> "pd.Series[str]":
    """Return words for the protocol and engine of each row."""
    return frame["protocol"].map(_PROTOCOL_WORDS) + ", " + frame["engine"].map(without_digits)


def _of_dense(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    return frame.assign(
        dense_label=frame["dense"].map(analysis.models.set_index("model")["label"]),
        dense_rank=frame["dense"].map(_rank(analysis)),
    )


def _rank(analysis: "Analysis") -> dict[str, int]:
    return {model: rank for rank, model in enumerate(analysis.models["model"])}


def _setting(frame: pd.DataFrame, gammas: str) -> "pd.Series[str]":
    return frame["draft_label"] + ", γ = " + frame[gammas].astype(str)
