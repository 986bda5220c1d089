"""The figures over draft length: speedup and acceptance rate, a panel for each draft."""

from collections.abc import Callable
from dataclasses import replace

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
    dodged,
    draw,
    draw_points,
    mark_no_change,
    panel_for_each,
    powers_of_two,
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


def plot_gamma_curves(analysis: Analysis) -> Figure | None:
    """Show the speedup predicted of every γ, with the measured ones as marks.

    A panel for each draft, a line for each target; None where no draft has read any text.
    """
    cells = analysis.gamma_curves
    if cells.empty:
        return None
    looks = target_looks(cells)
    figure, panels = panel_for_each(cells.groupby("draft_rank"))
    for axes, members in panels:
        for (series, own), dodge in dodged(members.groupby("series", sort=False)):
            look = looks[str(series)]
            gammas, ends = own["gamma"], own[["predicted", "predicted_low", "predicted_high"]]
            curve, low, high = ends.to_numpy(float).T
            axes.plot(gammas, curve, color=look.colour, linestyle=look.line, linewidth=1)
            axes.fill_between(gammas, low, high, color=look.colour, alpha=0.15, linewidth=0)
            measured = own[own["speedup"].notna()]
            draw(axes, measured, "gamma", SPEEDUP, replace(look, line="none"), dodge)
        powers_of_two(axes, (2**power for power in range(6)))
        axes.set_title(f"draft {short(members['draft_label'].iloc[0])}")
    for axes, _ in panels:
        mark_no_change(axes)
    figure.supxlabel(GAMMA_WORDS)
    figure.supylabel(SPEEDUP.words)
    add_legend(figure, series_handles(cells, looks))
    return figure


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
