"""The figure of networks in files of several types: speedup against bytes read."""

from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis, records
from specmoe.figures.panels import (
    SPEEDUP,
    add_legend,
    draw_series,
    handle,
    mark_no_change,
    panel_for_each,
    size_axis,
    start_at_zero,
)
from specmoe.figures.style import short, target_looks


def plot_types(analysis: Analysis) -> Figure | None:
    """Show speedup against the bytes a pass reads, or None if no network has several files.

    A panel for each draft, a line for each network and γ.
    """
    cells = analysis.types
    if cells.empty:
        return None
    divisor, unit = (1e9, "GB") if cells["pass_bytes"].max() >= 1e9 else (1e6, "MB")
    cells["read"] = cells["pass_bytes"] / divisor
    cells["series"] = cells["label"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)
    figure, panels = panel_for_each(cells.groupby("draft_rank"))
    for axes, of_draft in panels:
        draw_series(axes, of_draft, "read", SPEEDUP, looks)
        size_axis(axes, cells["read"])
        axes.set_title(f"draft {short(of_draft['draft_label'].iloc[0])}")
    for axes, _ in panels:
        start_at_zero(axes)
        mark_no_change(axes)
    figure.supxlabel(f"read by a pass over one token ({unit})")
    figure.supylabel(SPEEDUP.words)
    handles = [
        handle(looks[row["series"]], f"{short(row['label'])}, γ = {row['gamma']}")
        for row in records(cells.drop_duplicates("series"))
    ]
    add_legend(figure, handles)
    return figure
