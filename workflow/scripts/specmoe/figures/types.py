"""The figure of networks measured in files of several types: speedup against bytes read."""

from matplotlib.figure import Figure

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import cells_by_type
from specmoe.figures.panels import (
    Quantity,
    add_legend,
    dodged,
    draw,
    handle,
    make_panels,
    mark_no_change,
    size_axis,
    start_at_zero,
)
from specmoe.figures.style import applied, short, target_looks

_SPEEDUP = Quantity("speedup", "speedup over no draft", "speedup_low", "speedup_high")


@applied()
def plot_types(analysis: Analysis) -> Figure | None:
    """Show speedup against the bytes a pass reads, or None if no network has several files.

    A panel for each draft, a line for each network and γ.
    """
    cells = cells_by_type(analysis)
    if cells.empty:
        return None
    divisor, unit = (1e9, "GB") if cells["pass_bytes"].max() >= 1e9 else (1e6, "MB")
    cells["read"] = cells["pass_bytes"] / divisor
    cells["series"] = cells["label"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)
    groups = [members for _, members in cells.groupby("draft_rank")]
    figure, panels = make_panels(len(groups))
    for axes, of_draft in zip(panels, groups, strict=True):
        for (series, members), dodge in dodged(of_draft.groupby("series", sort=False)):
            draw(axes, members, "read", _SPEEDUP, looks[series], dodge)
        size_axis(axes, cells["read"])
        axes.set_title(f"draft {short(of_draft['draft_label'].iloc[0])}")
    for axes in panels:
        start_at_zero(axes)
        mark_no_change(axes)
    figure.supxlabel(f"read by a pass over one token ({unit})")
    figure.supylabel(_SPEEDUP.words)
    named = cells.drop_duplicates("series")[["series", "label", "gamma"]]
    add_legend(
        figure,
        [
            handle(looks[series], f"{short(label)}, γ = {gamma}")
            for series, label, gamma in named.itertuples(index=False)
        ],
    )
    return figure
