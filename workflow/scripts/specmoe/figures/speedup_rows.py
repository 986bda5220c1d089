"""Figures of speedups row by row: a panel for each target, marks below each other in each row."""

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from specmoe.analysis.number_text import prompts_in_short
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.analysis.views import best_settings, method_settings
from specmoe.figures import parts
from specmoe.figures.style import MARKERS, REFERENCE_COLOUR, Look, short, target_looks

_MAX_COLUMNS = 4
# More would not fit a page; the tables have them all.
_MOST_MARKS = 60
_LINE_IN = 0.13  # the height of a mark
_ROW_IN = 0.24  # that of two lines of text
# Between settings, and around all, in marks.
_GAP = 0.6
_EDGE = 0.8

# The look of a setting by the answer that it decides, and what the legend says of it.
_DECIDES = {
    "on": ("#44661A", "answer: switch on"),
    "off": ("#A33F00", "answer: leave off"),
    "little": ("#7A5C00", "answer: little to gain"),
    "": (REFERENCE_COLOUR, "decides no answer"),
}


def plot_best_settings(analysis: Analysis) -> Figure | None:
    """Show the fastest setting of each target on each set of prompts; None without advice."""
    rows = best_settings(analysis)
    if not rows:
        return None
    figure, [axes] = parts.make_panels(1, around_in=0.8, row_in=_ROW_IN * len(rows), single=1)
    samples = {}
    for place, row in enumerate(rows):
        colour, label = _DECIDES[row["decides"]]
        look, hollow = Look(colour, "o", "none"), not row["decides"]
        _mark(axes, row, place, look, hollow=hollow)
        samples[label] = parts.handle(look, label, hollow=hollow)
    axes.axvline(1, **parts.REFERENCE_LINE, zorder=1)
    names = [f"{short(row['label'])}, {prompts_in_short(row['prompt_set'])}" for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set(xlim=(0, None), ylim=(len(rows) - 0.4, -0.6), xlabel=parts.SPEEDUP_LABEL)
    return parts.with_legend(figure, list(samples.values()))


def plot_methods(analysis: Analysis) -> Figure | None:
    """Show the speedup of each drafting method, or None if no target has several.

    A line for each setting of what drafts; the marks of its draft lengths stand below each other.
    """
    settings = method_settings(analysis)
    if settings.empty:
        return None
    return _rows(settings, "draft_label", "gamma", "draft_rank", lambda gamma: f"γ = {gamma}")


def rows_of_levels(levels: pd.DataFrame) -> Figure | None:
    """Show the speedups at two levels of what suites vary, a line for each setting."""
    heading = levels["factor_label"].iloc[0]
    return _rows(levels, "setting", "level", "draft_rank", lambda level: f"{heading}: {level}")


def plot_categories(analysis: Analysis) -> Figure | None:
    """Show the speedup by category of prompt, or None if none has several prompts.

    A line for each category; the marks of the settings stand below each other. Settings that are
    too many for the page or the markers are left out, each target's fastest last.
    """
    settings = analysis.categories
    if not (settings["prompts"] > 1).any():
        return None
    drafts, gammas = settings["draft_label"].map(short), settings["gamma"].astype(str)
    settings = settings.assign(setting=drafts + ", γ = " + gammas)
    most = max(1, min(_MOST_MARKS // settings["category"].nunique(), len(MARKERS)))
    means = settings.groupby(["series", "setting"])["speedup"].mean()
    places = means.groupby("series").rank(ascending=False).groupby("setting").min()
    kept = settings["setting"].isin(places.nsmallest(most).index)
    return _rows(settings[kept], "category", "setting", "category", str)


def _rows(
    settings: pd.DataFrame, row: str, mark: str, order: str, name: Callable[[Any], str]
) -> Figure | None:
    """Return a figure of the settings' speedups with their intervals, a panel for each series.

    A line for each value of the column `row`, in the order of the column `order`; a mark for each
    value of the column `mark`, which `name` labels in the legend.
    """
    looks = target_looks(settings)
    markers = dict(zip(sorted(settings[mark].unique()), cycle(MARKERS)))
    placed = settings.sort_values(order, kind="stable")
    placed = placed.assign(line=pd.factorize(placed[row])[0]).drop_duplicates([row, mark])
    placed = placed.sort_values(["line", mark]).set_index([row, mark])
    # How far down each mark is, in marks, and the height of all.
    places = np.arange(len(placed)) + _GAP * placed["line"]
    height = places.iloc[-1] + _EDGE
    ticks = places.groupby(row, sort=False).mean()
    # Beyond all values, and beyond all intervals that are not too wide.
    values = settings["speedup"].max()
    furthest = max(1, values, settings["speedup_high"].clip(upper=parts.FURTHEST * values).max())

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        for setting in records(members):
            place = places[setting[row], setting[mark]]
            colour = looks[setting["series"]].colour
            _mark(axes, setting, place, Look(colour, markers[setting[mark]], "none"))
        axes.axvline(1, **parts.REFERENCE_LINE, zorder=1)
        axes.set_xlim(0, 1.04 * furthest)
        axes.set_ylim(height, -_EDGE)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_yticks(ticks, map(short, ticks.index))

    handles = [
        parts.handle(Look(REFERENCE_COLOUR, marker, "none"), name(value))
        for value, marker in markers.items()
    ]
    title = partial(parts.target_title, columns=min(_MAX_COLUMNS, settings["series"].nunique()))
    layout: Any = {"most_columns": _MAX_COLUMNS, "around_in": 0.9, "single": 1}
    layout |= {"row_in": _LINE_IN * height + 0.45, "title": title}
    groups, labels = settings.groupby("series", sort=False), [parts.SPEEDUP_LABEL]
    return parts.draw_panels(groups, draw_panel, labels, handles, **layout)


def _mark(axes: Axes, row: Record, place: float, look: Look, *, hollow: bool = False) -> None:
    """Draw the speedup of a setting with its interval, which may go on beyond the edge."""
    value, low, high = (row[f"speedup{end}"] for end in ("", "_low", "_high"))
    axes.errorbar(
        [value],
        [place],
        # Blocks that agree to the last digit give ends a rounding error beyond the value.
        xerr=[[max(value - low, 0)], [max(high - value, 0)]],
        markersize=4,
        elinewidth=0.8,
        capsize=1.5,
        **parts.line_style(look, hollow=hollow),
    )
