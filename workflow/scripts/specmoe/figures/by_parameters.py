"""The figures of speedup against the size of the target, a panel for each draft."""

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specmoe.analysis.filters import cells_by_draft
from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import (
    SPEEDUP,
    add_legend,
    dodged,
    draw,
    mark_no_change,
    panel_for_each,
    series_handles,
    size_axis,
)
from specmoe.figures.style import short, target_looks

POINT_DODGE_PT = 7.0


def plot_speedup_by_active_parameters(analysis: Analysis) -> Figure | None:
    """Show speedup against the parameters that one token uses, or None with a single target."""
    return _plot_by_parameters(analysis, "parameters_active", "active parameters")


def plot_speedup_by_total_parameters(analysis: Analysis) -> Figure | None:
    """Show speedup against all parameters of the target, or None with a single target."""
    return _plot_by_parameters(analysis, "parameters_total", "total parameters")


def _plot_by_parameters(analysis: Analysis, column: str, words: str) -> Figure | None:
    """Plot each draft at its middle γ."""
    cells = cells_by_draft(analysis)
    if cells["target"].nunique() < 2:
        return None
    divisor, unit = (1e9, "billions") if cells[column].max() >= 1e9 else (1e6, "millions")
    cells[column] = cells[column] / divisor
    looks = {series: replace(look, line="none") for series, look in target_looks(cells).items()}
    figure, panels = panel_for_each(cells.groupby("draft_rank"))
    for axes, of_draft in panels:
        gamma = _middle(of_draft["gamma"])
        members = of_draft[of_draft["gamma"] == gamma]
        _join_dense(axes, members, column)
        for _, beside in members.groupby(column):
            points = beside.groupby("series", sort=False)
            for (series, point), dodge in dodged(points, POINT_DODGE_PT):
                draw(axes, point, column, SPEEDUP, looks[series], dodge)
        size_axis(axes, cells[column])
        axes.set_title(f"draft {short(members['draft_label'].iloc[0])}, γ = {gamma}")
        mark_no_change(axes)
    figure.supxlabel(f"{words} of the target ({unit})")
    figure.supylabel(SPEEDUP.words)
    add_legend(figure, series_handles(cells, looks))
    return figure


def _middle(values: Iterable[int]) -> int:
    distinct = sorted(set(values))
    return distinct[(len(distinct) - 1) // 2]


def _join_dense(axes: Axes, members: pd.DataFrame, column: str) -> None:
    """Join the dense targets, to show on which side of them an MoE is."""
    dense = members[members["family"] == "dense"].sort_values(column)
    axes.plot(dense[column], dense["speedup"], color="#C9A98F", linewidth=0.8, zorder=1)
