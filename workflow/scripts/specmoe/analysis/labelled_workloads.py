"""The tables about workloads as tables and figures look at them: named and ordered."""

import pandas as pd

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import describe_cells, table
from specmoe.analysis.summaries import CELL
from specmoe.config.block import NO_DRAFT

_ORDER = ["target_rank", "suite", "draft_rank", "gamma", "workload"]


def category_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells by category.

    Added: category_label, the category, with its workload where a suite sends several.
    """
    cells = describe_cells(table(analysis, "categories"), analysis)
    several = cells.groupby("suite")["workload"].transform("nunique") > 1
    named = cells["category"].where(~several, cells["category"] + " (" + cells["workload"] + ")")
    return cells.assign(category_label=named).sort_values([*_ORDER, "category"], ignore_index=True)


def gap_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the gaps between categories; a cell without any has a row whose ratio is null."""
    cells = describe_cells(table(analysis, "category_gaps"), analysis)
    return cells.sort_values(
        [*_ORDER, "ratio"], ascending=[*[True] * len(_ORDER), False], ignore_index=True
    )


def ending_cells(analysis: Analysis) -> pd.DataFrame:
    """Return how the texts of workloads end, targets alone first.

    Added: acceptance_rate, speedup, speedup_low and speedup_high of the cell on the workload; null
    for texts of no workload.
    """
    cells = describe_cells(table(analysis, "endings"), analysis).astype({"workload": object})
    measured = ["acceptance_rate", "speedup", "speedup_low", "speedup_high"]
    by_prompt = table(analysis, "by_prompt")[[*CELL, "prompt", *measured]]
    cells = cells.merge(
        by_prompt.rename(columns={"prompt": "workload"}), how="left", on=[*CELL, "workload"]
    )
    alone = cells["draft"] == NO_DRAFT
    return cells.assign(
        draft_label=cells["draft_label"].where(~alone, None),
        draft_rank=cells["draft_rank"].where(~alone, -1),
    ).sort_values(_ORDER, ignore_index=True)
