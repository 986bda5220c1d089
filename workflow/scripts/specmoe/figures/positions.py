"""The figure of acceptance by position of a draft: a row of panels for each target."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import (
    PlottedColumn,
    add_legend,
    dodged,
    draw,
    handle,
    make_panels,
)
from specmoe.figures.style import looks_of, short

CONDITIONAL = PlottedColumn("conditional", "conditional")
JOINT = PlottedColumn("joint", "joint")
_SPREAD_PT = 6  # of the lines of a panel, which keeps equal values apart


def plot_positions(analysis: Analysis) -> Figure | None:
    """Show conditional and joint acceptance by position, or None if no rounds were logged.

    A line for each method and the file that it loads: its longest drafts, in the first setting that
    has them.
    """
    cells = _longest(analysis.positions)
    if cells.empty:
        return None
    ordered = cells.sort_values("draft_rank", kind="stable")
    looks = looks_of(ordered["drafter"].drop_duplicates())
    groups = [members for _, members in cells.groupby("series", sort=False)]
    figure, panels = make_panels(2 * len(groups), most_columns=2)
    for index, members in enumerate(groups):
        left, right = panels[2 * index : 2 * index + 2]
        for axes, plotted in [(left, CONDITIONAL), (right, JOINT)]:
            lines = list(members.groupby("drafter", sort=False))
            for (drafter, line), dodge in dodged(lines, min(2, _SPREAD_PT / len(lines))):
                draw(axes, line, "position", plotted, looks[drafter], dodge)
            axes.set_title(f"{short(members['label'].iloc[0])}, {plotted.words}")
            axes.set_xlim(0.5, cells["position"].max() + 0.5)
            axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    for axes in panels:
        axes.set_ylim(-0.03, 1.05)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.supxlabel("position in the draft (tokens)")
    figure.supylabel("accepted")
    add_legend(figure, [handle(look, short(drafter)) for drafter, look in looks.items()])
    return figure


def _longest(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the longest drafts of each target and drafter; one setting of each."""
    line = ["series", "drafter"]
    cells = cells[cells["gamma"] == cells.groupby(line)["gamma"].transform("max")]
    return cells[cells["draft_rank"] == cells.groupby(line)["draft_rank"].transform("min")]
