"""The tables about ways of drafting as tables and figures look at them: named and ordered."""

import pandas as pd

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import describe_cells, table

_ORDER = ["target_rank", "suite", "draft_rank", "gamma"]


def cells_by_method(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of targets that a suite measured with several methods.

    Added: engine_types, as a list in words; way, which rows of one target and method share.
    """
    cells = describe_cells(table(analysis, "methods"), analysis)
    return cells.assign(
        engine_types=cells["method"].str.replace(",", ", "),
        way=cells["series"] + " " + cells["method"],
    ).sort_values(_ORDER, ignore_index=True)


def positions_of_cells(analysis: Analysis) -> pd.DataFrame:
    """Return acceptance by cell and position.

    Added: drafter, the label of what drafts without its parameters.
    """
    cells = describe_cells(table(analysis, "positions"), analysis)
    drafters = table(analysis, "drafts").set_index("draft")["drafter"].astype(object)
    return cells.assign(drafter=cells["draft"].map(drafters)).sort_values(
        [*_ORDER, "position"], ignore_index=True
    )


def lengths_of_cells(analysis: Analysis) -> pd.DataFrame:
    """Return how many tokens the rounds of each cell accepted; `lengths` are words for a range."""
    cells = describe_cells(table(analysis, "accepted_lengths"), analysis)
    ends = zip(cells["least"], cells["most"], strict=True)
    return cells.assign(lengths=[_range(least, most) for least, most in ends]).sort_values(
        [*_ORDER, "least"], ignore_index=True
    )


def _range(least: int, most: int) -> str:
    if pd.isna(most):
        return f"{least}+"
    return str(least) if least == most else f"{least}–{most}"


def chains_of_cells(analysis: Analysis) -> pd.DataFrame:
    """Return what each type of each chain did, in the chain's order."""
    return describe_cells(table(analysis, "chains"), analysis).sort_values(
        [*_ORDER, "place"], ignore_index=True
    )
