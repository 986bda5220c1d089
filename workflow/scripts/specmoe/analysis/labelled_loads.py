"""The tables about requests at once as tables and figures look at them: named and ordered."""

import pandas as pd

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import describe_cells, table
from specmoe.analysis.summaries import CELL

_ORDER = ["target_rank", "suite", "draft_rank", "gamma", "imposed_acceptance"]


def load_cells(analysis: Analysis) -> pd.DataFrame:
    """Return what loads did, the settings of a target together and by requests at once.

    Added: see `_named`.
    """
    cells = _named(table(analysis, "concurrency"), analysis)
    return cells.sort_values([*_ORDER, "concurrency"], ignore_index=True)


def change_cells(analysis: Analysis) -> pd.DataFrame:
    """Return how the gains of settings change with requests at once.

    Added: see `_named`; and found, what the interval says: `falls`, `rises` or `undecided`.
    """
    changes = table(analysis, "concurrency_changes")
    cells = _named(changes.assign(target=changes["least_cell"]), analysis)
    found = pd.Series("undecided", index=cells.index, dtype=object)
    found[(cells["change_high"] < 1).astype(bool)] = "falls"
    found[(cells["change_low"] > 1).astype(bool)] = "rises"
    return cells.assign(found=found).sort_values(_ORDER, ignore_index=True)


def _named(cells: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return cells with the columns of their target, which is one whatever the requests at once.

    Added: label and target_label, its label without their number; setting, words for what drafts
    and how; series, the target and its suite; line, the series and the setting.
    """
    cells = describe_cells(cells, analysis, once=CELL)
    imposed = cells["imposed_acceptance"].map(
        lambda share: "" if pd.isna(share) else f", {100 * share:g} % imposed"
    )
    setting = cells["draft_label"] + ", γ = " + cells["gamma"].astype(str) + imposed
    target = cells["of_label"]
    suites = cells.groupby("of_target")["suite"].transform("nunique")
    where = (" (suite " + cells["suite"] + ")").where(suites > 1, "")
    ranks = cells.groupby("of_target")["target_rank"].transform("min")
    return cells.assign(
        label=target + where,
        target_label=target + where,
        target_rank=ranks,
        setting=setting,
        series=cells["of_target"] + " " + cells["suite"],
        line=cells["of_target"] + " " + cells["suite"] + " " + setting,
    )
