"""The figure of suites that sample: acceptance rate and speedup against temperature."""

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from specmoe.analysis.registry import Analysis, records
from specmoe.figures.panels import (
    ACCEPTANCE,
    SPEEDUP,
    add_legend,
    draw_points,
    handle,
    make_panels,
    mark_no_change,
    start_at_zero,
)
from specmoe.figures.style import short, target_looks


def plot_temperatures(analysis: Analysis) -> Figure | None:
    """Show what temperature does, or None if nothing was sampled.

    A line for each target, draft and γ.
    """
    cells = analysis.temperatures
    if cells.empty:
        return None
    cells["series"] = cells["series"] + " " + cells["draft"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)
    figure, (left, right) = make_panels(2, sharey=False)
    for axes, plotted in [(left, ACCEPTANCE), (right, SPEEDUP)]:
        draw_points(axes, cells, "temperature", plotted, looks, categories=cells["temperature"])
        axes.set_ylabel(plotted.words)
        start_at_zero(axes)
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    mark_no_change(right)
    figure.supxlabel("temperature")
    handles = []
    for row in records(cells.drop_duplicates("series")):
        words = f"{short(row['label'])}, draft {short(row['draft_label'])}, γ = {row['gamma']}"
        handles.append(handle(looks[row["series"]], words))
    add_legend(figure, handles)
    return figure
