"""The tables about twins as tables, figures and sentences look at them: named and in order."""

import pandas as pd

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import describe_cells, ordered_models, table
from specmoe.config.methods import METHODS, Method

_ORDER = ["dense_rank", "target_rank", "suite", "draft_rank", "imposed_acceptance", "gamma"]


def twin_cells(analysis: Analysis) -> pd.DataFrame:
    """Return what MoEs gain beside their dense twins, those of a dense model together.

    Added: dense_label, dense_rank, and setting, words for what drafts and how.
    """
    cells = describe_cells(table(analysis, "twins"), analysis)
    imposed = cells["imposed_acceptance"].map(
        lambda share: "" if pd.isna(share) else f", {100 * share:g} % imposed"
    )
    setting = cells["draft_label"] + ", γ = " + cells["gammas"].astype(str) + imposed
    return _of_family(cells.assign(setting=setting), analysis).sort_values(
        _ORDER, ignore_index=True
    )


def twin_pass_rows(analysis: Analysis) -> pd.DataFrame:
    """Return what passes cost twins; a dense model comes before its MoEs.

    Added: label, family and rank of the model; dense_label, dense_rank; is_dense.
    """
    models = ordered_models(analysis)
    models = models.assign(rank=range(len(models)))[["model", "label", "family", "rank"]]
    passes = table(analysis, "twin_passes").merge(models, how="left", on="model", validate="m:1")
    passes = passes.assign(is_dense=passes["model"] == passes["dense"])
    return _of_family(passes, analysis).sort_values(
        ["dense_rank", "is_dense", "rank", "width"],
        ascending=[True, False, True, True],
        ignore_index=True,
    )


def told_twins(analysis: Analysis) -> pd.DataFrame:
    """Return one row of `twin_cells` for each MoE: over all γ, of the setting that says most.

    That is a draft model at its own acceptance; else the highest acceptance that was imposed; else
    another way of drafting.
    """
    cells = twin_cells(analysis)
    by_model = cells["method"] == METHODS[Method.DRAFT].engine
    imposed = cells["imposed_acceptance"].astype(float)
    cells = cells.assign(
        place=(~by_model).astype(int) * 2 + imposed.notna(),
        widest=cells["gammas"].map(lambda gammas: len(str(gammas).split())),
        share=imposed.fillna(1),
    )
    first = cells.sort_values(
        ["place", "share", "widest"], ascending=[True, False, False], kind="stable"
    )
    return first.drop_duplicates("target").sort_index(ignore_index=True)


def _of_family(rows: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    models = ordered_models(analysis)
    ranks = {model: rank for rank, model in enumerate(models["model"])}
    labels = models.set_index("model")["label"]
    return rows.assign(dense_label=rows["dense"].map(labels), dense_rank=rows["dense"].map(ranks))
