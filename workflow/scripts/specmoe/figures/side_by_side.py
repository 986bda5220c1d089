"""The figure of campaigns side by side: speedup against draft length, a colour a campaign."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specmoe.analysis.filters import drawn_side_by_side
from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import (
    GAMMA_WORDS,
    SPEEDUP,
    add_legend,
    draw_points,
    handle,
    mark_no_change,
    panel_for_each,
    start_at_zero,
)
from specmoe.figures.style import REFERENCE_COLOUR, Look, compared_looks, short

_BETWEEN = "\n"  # in no heading and no label


def plot_side_by_side(analysis: Analysis) -> Figure | None:
    """Show the speedups of several campaigns against draft length, or None if only one has any.

    The panels are those of `drawn_side_by_side`. A line for each campaign and draft. The audit
    marks runs of hollow dots.
    """
    cells = drawn_side_by_side(analysis)
    if cells.empty:
        return None
    listed = analysis.compared_campaigns["heading"]
    headings = listed[listed.isin(cells["heading"])].tolist()
    drafts = cells["draft_label"].drop_duplicates().tolist()
    pairs = compared_looks(headings, drafts)
    looks = {f"{heading}{_BETWEEN}{draft}": look for (heading, draft), look in pairs.items()}
    cells["series"] = cells["heading"] + _BETWEEN + cells["draft_label"]
    figure, panels = panel_for_each(cells.groupby("panel"))
    for axes, members in panels:
        here = {series: looks[series] for series in members["series"].unique()}
        _draw_cells(axes, members, here, cells["gamma"])
        axes.set_title(_title(members, cells))
    for axes, _ in panels:
        start_at_zero(axes)
        mark_no_change(axes)
    figure.supxlabel(GAMMA_WORDS)
    figure.supylabel(SPEEDUP.words)
    campaigns = [
        handle(replace(pairs[heading, drafts[0]], marker="", line="-"), short(heading))
        for heading in headings
    ]
    of_drafts = [
        handle(replace(pairs[headings[0], draft], colour=REFERENCE_COLOUR), f"draft {short(draft)}")
        for draft in drafts
    ]
    add_legend(figure, [*campaigns, *of_drafts])
    return figure


def _draw_cells(
    axes: Axes, cells: pd.DataFrame, looks: Mapping[str, Look], gammas: Iterable[int]
) -> None:
    """Draw the cells of a panel, those with marked runs hollow."""
    draw_points(axes, cells, "gamma", SPEEDUP, looks, categories=gammas)
    marked = cells[cells["marked"] > 0]
    if not marked.empty:
        dots = {series: replace(look, line="none") for series, look in looks.items()}
        draw_points(axes, marked, "gamma", SPEEDUP, dots, categories=gammas, hollow=True)


def _title(members: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Return the target's label, and its prompts where there is more than one panel of it."""
    first = members.iloc[0]
    of_target = cells[cells["target_label"] == first["target_label"]]
    if of_target["panel"].nunique() == 1:
        return short(first["target_label"])
    return f"{short(first['target_label'])}\n{short(first['prompts'])}"
