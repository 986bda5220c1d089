"""The figure of one matrix that was measured in several ways: by two protocols, or two engines."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import cells_by_way
from specmoe.figures.panels import (
    Quantity,
    add_legend,
    dodged,
    draw,
    handle,
    mark_no_change,
    powers_of_two,
    start_at_zero,
)
from specmoe.figures.style import WIDTH_IN, applied, short, way_looks

ROW_HEIGHT_IN = 1.7
# Below these the axes are linear, so that zero has a place.
LEAST_ACCEPTANCE, LEAST_FAILURES = 1e-3, 1.0

_ACCEPTANCE = Quantity("acceptance_rate", "acceptance rate")
_SPEEDUP = Quantity("speedup", "speedup it reports", "speedup_low", "speedup_high")
_FAILURES = Quantity("decode_failures", "failed decodes a run")


@applied()
def plot_protocols(analysis: Analysis) -> Figure | None:
    """Show what each way of measuring gives for the same cells, or None with a single way.

    A row of panels for each target and draft, a line for each way, over draft length.
    """
    cells = cells_by_way(analysis)
    if cells.empty:
        return None
    rows = [members for _, members in cells.groupby(["target_rank", "draft_rank"])]
    figure = Figure(figsize=(WIDTH_IN, 0.7 + ROW_HEIGHT_IN * len(rows)))
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex=True, sharey="col")
    looks = way_looks(cells["way"].unique())
    for panels, members in zip(grid, rows, strict=True):
        for axes, quantity in zip(panels, (_ACCEPTANCE, _SPEEDUP, _FAILURES), strict=True):
            for (way, line), dodge in dodged(members.groupby("way", sort=False)):
                draw(axes, line, "gamma", quantity, looks[way], dodge)
            powers_of_two(axes, cells["gamma"])
        panels[0].set_ylabel(_words(members))
    for axes, quantity in zip(grid[0], (_ACCEPTANCE, _SPEEDUP, _FAILURES), strict=True):
        axes.set_title(quantity.words)
    for acceptance, speedup, failures in grid:
        _show_shares(acceptance)
        mark_no_change(speedup)
        _show_counts(failures, cells["decode_failures"].max())
    start_at_zero(grid[0][1])
    figure.supxlabel("draft length γ (tokens)")
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
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.minorticks_off()
