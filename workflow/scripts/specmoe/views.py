"""The analysis as tables and figures look at it: joined with the models, named and ordered.

Nothing here computes a number; rows are chosen, put in order, and given their labels.
"""

import pandas as pd

from specmoe.analysis import CARD_COLUMNS, Analysis
from specmoe.errors import SchemaError

_CELL = [
    "suite",
    "target",
    "draft",
    "gamma",
    "runs",
    "tokens_per_second",
    "tokens_per_second_sd",
    "acceptance_rate",
    "acceptance_rate_mean",
    "mean_accepted_length",
    "speedup",
    "speedup_low",
    "speedup_high",
    "speedup_unpaired",
    "common_prefix_min",
    "identical",
]
_COLUMNS = {
    "baselines": [
        "target",
        "tokens_per_second",
        "tokens_per_second_sd",
        "prompt_tokens_per_second",
        "runs",
    ],
    "cells": _CELL,
    "sweep": [*_CELL, "n_prompt", "baseline_tokens_per_second"],
    "models": ["model", "label", "family", *CARD_COLUMNS],
    "suites": ["suite", "title", "runs", "blocks", "measured"],
    "audit": ["target", "draft", "gamma", "runs", "marked"],
    "reported": ["what", "source", "printed", "recomputed", "digits", "equal"],
}


def table(analysis: Analysis, name: str) -> pd.DataFrame:
    """Return a table of the analysis, with every column that is shown of it.

    A campaign without speculation has tables without rows, and those may lack columns. Raises
    SchemaError when a table with rows lacks one.
    """
    frame: pd.DataFrame = getattr(analysis, name)
    lacking = [column for column in _COLUMNS[name] if column not in frame.columns]
    if frame.empty:
        return frame.reindex(columns=[*frame.columns, *lacking]).astype(object)
    if lacking:
        raise SchemaError(
            f"table {name!r} of the analysis has no column {lacking[0]!r}; compute it again"
        )
    return frame


def ordered_models(analysis: Analysis) -> pd.DataFrame:
    """Return the models in the order of all tables and figures: MoE first, then by size."""
    frame = table(analysis, "models")
    keys = ["family", "parameters_total", "size_bytes", "model"]
    ascending = [False, True, True, True]  # "moe" is after "dense" in the alphabet
    return frame.sort_values(keys, ascending=ascending, ignore_index=True)


def ordered_baselines(analysis: Analysis) -> pd.DataFrame:
    """Return the baselines with their models' columns (`label`, `family`, ...), in order."""
    return _with_targets(table(analysis, "baselines"), analysis).sort_values(
        "target_rank", ignore_index=True
    )


def text_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of suites that send whole texts; those of exact length are the sweep's.

    See `describe_cells` for the columns added.
    """
    cells, by_length = table(analysis, "cells"), table(analysis, "sweep")
    return describe_cells(cells[~cells["suite"].isin(by_length["suite"])], analysis)


def length_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells by prompt length; see `describe_cells` for the columns added."""
    return describe_cells(table(analysis, "sweep"), analysis).sort_values(
        ["target_rank", "suite", "draft_rank", "gamma", "n_prompt"], ignore_index=True
    )


def describe_cells(cells: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return cells in order, with the columns of their target and words for both models.

    Added: label, family and sizes of the target, draft_label, and `series`, which tells apart what
    a figure draws as one line: the target, and the suite too where two suites of a campaign
    measured the same target, draft and γ. `label` then names the suite.
    """
    cells = _with_targets(cells, analysis)
    drafts = ordered_models(analysis)[["model", "label"]].rename(columns={"label": "draft_label"})
    drafts["draft_rank"] = range(len(drafts))
    cells = cells.merge(drafts, how="left", left_on="draft", right_on="model", validate="m:1")
    cells = cells.drop(columns="model")
    suites = cells.groupby(["target", "draft", "gamma"])["suite"].transform("nunique")
    shared = cells["target"].isin(cells.loc[suites.gt(1), "target"])
    cells["series"] = cells["target"].where(~shared, cells["target"] + " " + cells["suite"])
    cells["label"] = cells["label"].where(
        ~shared, cells["label"] + " (suite " + cells["suite"] + ")"
    )
    return cells.sort_values(["target_rank", "suite", "draft_rank", "gamma"], ignore_index=True)


def _with_targets(frame: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    targets = ordered_models(analysis)
    targets["target_rank"] = range(len(targets))
    merged = frame.merge(targets, how="left", left_on="target", right_on="model", validate="m:1")
    return merged.drop(columns="model")
