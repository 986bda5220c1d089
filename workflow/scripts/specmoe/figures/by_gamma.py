"""The figures over draft length: speedup and acceptance rate, a panel for each draft."""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from specmoe.analysis.filters import cells_by_draft
from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import (
    ACCEPTANCE,
    GAMMA_WORDS,
    SPEEDUP,
    PlottedColumn,
    add_legend,
    draw_points,
    mark_no_change,
    panel_for_each,
    series_handles,
    start_at_zero,
)
from specmoe.figures.style import short, target_looks


def plot_speedup_by_gamma(analysis: Analysis) -> Figure | None:
    """Show speedup with its intervals, a line for each target, or None without drafts."""
    return _plot_by_gamma(analysis, SPEEDUP, mark_no_change)


def plot_acceptance_by_gamma(analysis: Analysis) -> Figure | None:
    """Show the acceptance rate, a line for each target, or None without drafts."""
    return _plot_by_gamma(analysis, ACCEPTANCE, _show_percent)


def _plot_by_gamma(
    analysis: Analysis, plotted: PlottedColumn, finish: Callable[[Axes], None]
) -> Figure | None:
    cells = cells_by_draft(analysis)
    if cells.empty:
        return None
    looks = target_looks(cells)
    figure, panels = panel_for_each(cells.groupby("draft_rank"))
    for axes, members in panels:
        here = {series: looks[series] for series in members["series"].unique()}
        draw_points(axes, members, "gamma", plotted, here, categories=cells["gamma"])
        axes.set_title(f"draft {short(members['draft_label'].iloc[0])}")
    # The panels share their vertical axis, so its limits are set after all lines are drawn.
    for axes, _ in panels:
        finish(axes)
    figure.supxlabel(GAMMA_WORDS)
    figure.supylabel(plotted.words)
    add_legend(figure, series_handles(cells, looks))
    return figure


def _show_percent(axes: Axes) -> None:
    start_at_zero(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
