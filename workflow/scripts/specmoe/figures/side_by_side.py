"""The figure of campaigns side by side: speedup against draft length, a colour for each of them."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import drawn_side_by_side, table
from specmoe.figures.panels import (
    Quantity,
    add_legend,
    dodged,
    draw,
    handle,
    make_panels,
    mark_no_change,
    powers_of_two,
    start_at_zero,
)
from specmoe.figures.style import REFERENCE_COLOUR, Look, applied, compared_looks, short

LINE_DODGE_PT = 4.5

_SPEEDUP = Quantity("speedup", "speedup over no draft", "speedup_low", "speedup_high")


@applied()
def plot_side_by_side(analysis: Analysis) -> Figure | None:
    """Show the speedups of several campaigns against draft length, or None if only one has any.

    The panels are those of `drawn_side_by_side`. A line for each campaign and draft; hollow dots
    have runs that the audit marks.
    """
    cells = drawn_side_by_side(analysis)
    if cells.empty:
        return None
    listed = table(analysis, "compared_campaigns")["heading"]
    headings = listed[listed.isin(cells["heading"])].tolist()
    drafts = cells["draft_label"].drop_duplicates().tolist()
    looks = compared_looks(headings, drafts)
    groups = [members for _, members in cells.groupby("panel")]
    figure, panels = make_panels(len(groups))
    for axes, members in zip(panels, groups, strict=True):
        lines = members.groupby(["heading", "draft_label"], sort=False)
        for (key, line), dodge in dodged(lines, LINE_DODGE_PT):
            _draw_line(axes, line, looks[key], dodge)
        powers_of_two(axes, cells["gamma"])
        axes.set_title(_title(members, cells))
    for axes in panels:
        start_at_zero(axes)
        mark_no_change(axes)
    figure.supxlabel("draft length γ (tokens)")
    figure.supylabel(_SPEEDUP.words)
    campaigns = [
        handle(replace(looks[heading, drafts[0]], marker="", line="-"), short(heading))
        for heading in headings
    ]
    of_drafts = [
        handle(replace(looks[headings[0], draft], colour=REFERENCE_COLOUR), f"draft {short(draft)}")
        for draft in drafts
    ]
    add_legend(figure, [*campaigns, *of_drafts])
    return figure


def _draw_line(axes: Axes, line: pd.DataFrame, look: Look, dodge: float) -> None:
    """Draw a campaign's cells of one draft, those with marked runs hollow."""
    draw(axes, line, "gamma", _SPEEDUP, look, dodge)
    marked = line[line["marked"] > 0]
    if not marked.empty:
        draw(axes, marked, "gamma", _SPEEDUP, replace(look, line="none"), dodge, hollow=True)


def _title(members: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Return the target's label, and its prompts where there is more than one panel of it."""
    first = members.iloc[0]
    of_target = cells[cells["target_label"] == first["target_label"]]
    if of_target["panel"].nunique() == 1:
        return short(first["target_label"])
    return f"{short(first['target_label'])}\n{short(first['prompts'])}"
