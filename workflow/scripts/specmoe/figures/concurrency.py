"""The figure of requests at once: the gain in throughput against their number."""

from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis, records
from specmoe.figures.panels import (
    PlottedColumn,
    add_legend,
    draw_series,
    handle,
    mark_no_change,
    panel_for_each,
    start_at_zero,
)
from specmoe.figures.style import short, way_looks

THROUGHPUT = PlottedColumn(
    "throughput_ratio",
    "throughput over no draft",
    "throughput_ratio_low",
    "throughput_ratio_high",
)


def plot_concurrency(analysis: Analysis) -> Figure | None:
    """Show throughput over that without a draft by requests at once, or None without loads.

    A panel for each target and suite, a line for each setting.
    """
    cells = analysis.concurrency
    if cells.empty:
        return None
    looks = way_looks(cells["setting"].unique())
    figure, panels = panel_for_each(cells.groupby("series", sort=False))
    numbers = sorted(cells["concurrency"].unique())
    for axes, members in panels:
        of_target = members.assign(series=members["setting"])
        draw_series(axes, of_target, "concurrency", THROUGHPUT, looks)
        axes.set_xticks(numbers)
        axes.set_title(short(members["label"].iloc[0]))
    for axes, _ in panels:
        start_at_zero(axes)
        mark_no_change(axes)
    figure.supxlabel("requests at once")
    figure.supylabel(THROUGHPUT.words)
    rows = records(cells.drop_duplicates("setting"))
    add_legend(figure, [handle(looks[row["setting"]], short(row["setting"])) for row in rows])
    return figure
