"""The tables of the cost model as tables and figures look at them: named and in order.

All have the columns that `_described` adds; the functions name only their own.
"""

import numpy as np
import pandas as pd

from specmoe.analysis.build import Analysis
from specmoe.analysis.cost_tables import PAIR
from specmoe.analysis.labelled import draft_labels, draft_ranks, ordered_models, table
from specmoe.config.study import CELLS


def pass_costs(analysis: Analysis) -> pd.DataFrame:
    """Return the widths measured, with their targets.

    Added: gamma, the draft length whose rounds have that width, and of it the columns of
    `round_costs`; null where none has.
    """
    passes = table(analysis, "verification")
    rounds = table(analysis, "round_costs")
    passes = passes.assign(gamma=passes["width"] - 1)
    merged = passes.merge(rounds, how="left", on=[*PAIR, "gamma"])
    return _described(merged, analysis).sort_values(
        ["target_rank", "draft_rank", "width"], ignore_index=True
    )


def timed_passes(analysis: Analysis) -> pd.DataFrame:
    """Return v of the passes that were timed by themselves, one row per target and width."""
    passes = pass_costs(analysis)
    passes = passes[passes["timed"].astype(bool)]
    return passes.drop_duplicates(["target", "width"], ignore_index=True)


def predicted_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells that the cost model predicts."""
    return _cells(table(analysis, "predictions"), analysis)


def break_even_cells(analysis: Analysis) -> pd.DataFrame:
    """Return where speculation pays, by draft length."""
    return _cells(table(analysis, "break_even"), analysis)


def cells_below_ceilings(analysis: Analysis) -> pd.DataFrame:
    """Return the cells with their ceilings.

    Added: printed, the speedup that the published study prints of a cell of whole texts; null in
    other campaigns.
    """
    cells = _cells(table(analysis, "ceilings"), analysis)
    stated = table(analysis, "comparison")
    stated = stated[stated["source"] == CELLS]
    printed = dict(zip(stated["what"], stated["printed"], strict=True))
    names = "speedup " + cells["target"] + " " + cells["draft"] + " " + cells["gamma"].astype(str)
    of_study = analysis.campaign["source"].iloc[0] == "published"
    of_texts = ~cells["suite"].isin(table(analysis, "sweep")["suite"])
    return cells.assign(printed=names.map(printed).where(of_texts) if of_study else np.nan)


def prediction_error_rows(analysis: Analysis) -> pd.DataFrame:
    """Return the errors of predictions, with words for the targets and drafts of the worst."""
    labels = table(analysis, "models").set_index("model")["label"]
    frame = table(analysis, "prediction_errors")
    return frame.assign(
        worst_target_label=frame["worst_target"].map(labels),
        worst_draft_label=frame["worst_draft"].map(draft_labels(analysis)),
    )


def _cells(frame: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    return _described(frame, analysis).sort_values(
        ["target_rank", "draft_rank", "gamma", "suite"], ignore_index=True
    )


def _described(frame: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return rows of targets and drafts with words and ranks for both.

    Added: target_label, family, draft_label, target_rank, draft_rank, and `series`, what a figure
    draws as one line: the target, and the draft too where a target has several; `label` names it.
    """
    models = ordered_models(analysis)
    labels, families = (models.set_index("model")[column] for column in ("label", "family"))
    ranks = pd.Series(range(len(models)), index=models["model"])
    several = frame.groupby("target")["draft"].transform("nunique").gt(1)
    label = frame["target"].map(labels)
    draft_label = frame["draft"].map(draft_labels(analysis)).astype(object)
    return frame.assign(
        target_label=label,
        label=label.where(~several, label + ", draft " + draft_label),
        family=frame["target"].map(families),
        draft_label=draft_label,
        target_rank=frame["target"].map(ranks),
        draft_rank=frame["draft"].map(draft_ranks(analysis)),
        series=frame["target"].where(~several, frame["target"] + " " + frame["draft"]),
    )
