"""The figure of ways of drafting: speedup by method, a panel for each target."""

from math import isfinite
from statistics import mean
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import Record, records
from specmoe.analysis.labelled_methods import cells_by_method
from specmoe.figures.panels import (
    FURTHEST,
    REFERENCE_LINE,
    SPEEDUP,
    add_legend,
    handle,
    make_rows_of_panels,
)
from specmoe.figures.style import REFERENCE_COLOUR, Look, gamma_markers, short, target_looks

MAX_COLUMNS = 4
_TITLE_LETTERS = 72  # of titles side by side
_LINE_IN = 0.13  # the height of a mark
# Between settings, and around all, in marks.
_GAP = 0.6
_EDGE = 0.8


def plot_methods(analysis: Analysis) -> Figure | None:
    """Show the speedup of each way of drafting, or None if no target has several.

    A line for each setting of what drafts; the marks of its draft lengths stand below each other.
    """
    cells = cells_by_method(analysis)
    if cells.empty:
        return None
    looks, markers = target_looks(cells), gamma_markers(sorted(cells["gamma"].unique()))
    slots, height = _slots(cells)
    groups = [members for _, members in cells.groupby("series", sort=False)]
    columns = min(MAX_COLUMNS, len(groups))
    figure, panels = make_rows_of_panels(len(groups), MAX_COLUMNS, _LINE_IN * height)
    furthest = _furthest(cells)
    for axes, members in zip(panels, groups, strict=True):
        for row in records(members):
            place = slots[row["draft_label"]][row["gamma"]]
            colour = looks[row["series"]].colour
            _mark(axes, row, place, Look(colour, markers[row["gamma"]], "none"))
        axes.axvline(1, **REFERENCE_LINE, zorder=1)
        axes.set_xlim(0, 1.04 * furthest)
        axes.set_title(fill(short(members["label"].iloc[0]), _TITLE_LETTERS // columns))
    for axes in panels:  # they share the axis of settings
        axes.set_ylim(height, -_EDGE)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_yticks([mean(places.values()) for places in slots.values()])
        axes.set_yticklabels(map(short, slots))
    figure.supxlabel(SPEEDUP.words)
    grey = [
        handle(Look(REFERENCE_COLOUR, marker, "none"), f"γ = {gamma}")
        for gamma, marker in markers.items()
    ]
    add_legend(figure, grey)
    return figure


def _slots(cells: pd.DataFrame) -> tuple[dict[str, dict[int, float]], float]:
    """Return how far down each label's marks are by γ, in marks, and the height of all."""
    slots: dict[str, dict[int, float]] = {}
    top = 0.0
    ordered = cells.sort_values("draft_rank", kind="stable")
    for label, members in ordered.groupby("draft_label", sort=False):
        gammas = sorted(members["gamma"].unique())
        slots[str(label)] = {int(gamma): top + place for place, gamma in enumerate(gammas)}
        top += len(gammas) + _GAP
    return slots, top - _GAP - 1 + _EDGE


def _furthest(cells: pd.DataFrame) -> float:
    """Return the end of the axis: beyond all values, and beyond all intervals not too wide."""
    values = cells[SPEEDUP.column].max()
    return float(max(1, values, cells["speedup_high"].clip(upper=FURTHEST * values).max()))


def _mark(axes: Axes, row: Record, place: float, look: Look) -> None:
    """Draw the speedup of a cell with its interval, which may go on beyond the edge."""
    value, *ends = (row[f"{SPEEDUP.column}{end}"] for end in ("", "_low", "_high"))
    known = all(isfinite(end) for end in ends)
    axes.errorbar(
        [value],
        [place],
        # Blocks that agree to the last digit give ends a rounding error beyond the value.
        xerr=[[max(value - ends[0], 0)], [max(ends[1] - value, 0)]] if known else None,
        color=look.colour,
        marker=look.marker,
        markersize=4,
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.8,
        capsize=1.5,
        linestyle="none",
    )
