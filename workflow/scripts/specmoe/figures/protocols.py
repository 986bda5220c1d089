"""The figure of cells that several protocols or engines measured."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from specmoe.analysis.filters import cells_by_way
from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import (
    ACCEPTANCE,
    GAMMA_WORDS,
    PlottedColumn,
    add_legend,
    draw_points,
    handle,
    mark_no_change,
    start_at_zero,
)
from specmoe.figures.style import WIDTH_IN, looks_of, short

ROW_HEIGHT_IN = 1.7
# The axes are linear below these, so that they can show zero.
LEAST_ACCEPTANCE, LEAST_FAILURES = 1e-3, 1.0

_SPEEDUP = PlottedColumn("speedup", "speedup it reports", "speedup_low", "speedup_high")
_FAILURES = PlottedColumn("decode_failures", "failed decodes a run")
_COLUMNS = (ACCEPTANCE, _SPEEDUP, _FAILURES)


def plot_protocols(analysis: Analysis) -> Figure | None:
    """Show the results of each way of measuring the same cells, or None with a single way.

    A row of panels for each target and draft, a line for each way, over draft length.
    """
    cells = cells_by_way(analysis)
    if cells.empty:
        return None
    cells["series"] = cells["way"]
    rows = [members for _, members in cells.groupby(["target_rank", "draft_rank"])]
    figure = Figure(figsize=(WIDTH_IN, 0.7 + ROW_HEIGHT_IN * len(rows)))
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex=True, sharey="col")
    looks = looks_of(cells["way"].unique())
    for panels, members in zip(grid, rows, strict=True):
        here = {way: looks[way] for way in members["series"].unique()}
        for axes, plotted in zip(panels, _COLUMNS, strict=True):
            draw_points(axes, members, "gamma", plotted, here, categories=cells["gamma"])
        panels[0].set_ylabel(_words(members))
    for axes, plotted in zip(grid[0], _COLUMNS, strict=True):
        axes.set_title(plotted.words)
    for acceptance, speedup, failures in grid:
        _show_shares(acceptance)
        mark_no_change(speedup)
        _show_counts(failures, cells["decode_failures"].max())
    start_at_zero(grid[0][1])
    figure.supxlabel(GAMMA_WORDS)
    add_legend(figure, [handle(look, way) for way, look in looks.items()])
    return figure


def _words(members: pd.DataFrame) -> str:
    first = members.iloc[0]
    return f"{short(first['target_label'])}\ndraft {short(first['draft_label'])}"


def _show_shares(axes: Axes) -> None:
    axes.set_yscale("symlog", linthresh=LEAST_ACCEPTANCE)
    axes.set_ylim(0, 1.5)
    axes.set_yticks([0, 1e-3, 1e-2, 1e-1, 1], minor=False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.minorticks_off()


def _show_counts(axes: Axes, most: float) -> None:
    axes.set_yscale("symlog", linthresh=LEAST_FAILURES)
    axes.set_ylim(-0.4, 3 * max(float(most), LEAST_FAILURES))  # room for the markers of both ends
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
