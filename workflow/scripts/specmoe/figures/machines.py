"""Figures of machines: the speedup of each setting on each of them."""

import pandas as pd
from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures.speedup_rows import MOST_MARKS, draw_rows
from specmoe.figures.style import short


def plot_machines(analysis: Analysis) -> Figure | None:
    """Show the speedup of settings on each machine, or None if one machine measured all."""
    return _by_machine(analysis.machines)


def plot_merged(analysis: Analysis) -> Figure | None:
    """Show the speedup of settings in each of the campaigns that are merged, or None."""
    return _by_machine(analysis.merged)


def _by_machine(cells: pd.DataFrame) -> Figure | None:
    """Draw a line for each setting; the marks of the machines stand below each other.

    Where these would be too many, each target keeps its fastest settings.
    """
    if cells.empty:
        return None
    shown = max(MOST_MARKS // cells["machine"].nunique(), 1)
    fastest = cells.groupby("cell").agg(series=("series", "first"), speedup=("speedup", "max"))
    ranks = fastest.groupby("series")["speedup"].rank(ascending=False, method="first")
    kept = cells[cells["cell"].map(ranks <= shown).astype(bool)]
    order = kept.sort_values(["draft_rank", "gamma"]).groupby("setting", sort=False).ngroup()
    kept = kept.assign(order=order, setting=kept["setting"].map(short))
    return draw_rows(kept, "setting", "machine", "order", short)
