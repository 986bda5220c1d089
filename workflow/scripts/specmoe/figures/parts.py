"""Building blocks of the figures: panels, points with their intervals, axes, legends."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, nan
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from specmoe.figures import style
from specmoe.figures.style import REFERENCE_COLOUR, Look, short

MAX_COLUMNS = 3
_TITLE_LETTERS = 72  # of titles side by side
# How far lines are moved apart, so that equal values are, and how far all of a panel together.
_DODGE_PT, _SPREAD_PT = 3.0, 12.0
# An interval this many times beyond all values of its line runs off the axes: those of few blocks
# can be so wide that they would crowd the values.
FURTHEST = 3

ACCEPTANCE_LABEL = "acceptance rate"
SPEEDUP_LABEL = "speedup over the baseline"
# A reference line, and the text next to it.
REFERENCE_LINE: Any = {"color": REFERENCE_COLOUR, "linestyle": (0, (6, 2)), "linewidth": 0.9}
REFERENCE_TEXT: Any = {"ha": "right", "fontsize": 7, "style": "italic", "color": REFERENCE_COLOUR}
GAMMA_LABEL = "draft length γ (tokens)"


def target_title(members: pd.DataFrame, columns: int = MAX_COLUMNS) -> str:
    """Return the title of a panel of one target, in lines that fit beside other panels."""
    return fill(members["label"].iloc[0], _TITLE_LETTERS // columns, max_lines=3, placeholder="…")


def draw_panels(
    groups: Iterable[Any],
    draw_panel: Callable[[Axes, pd.DataFrame], None],
    labels: Sequence[str],
    handles: Sequence[Line2D],
    *,
    title: Callable[[pd.DataFrame], str] = target_title,
    **layout: Any,
) -> Figure | None:
    """Return a figure with a panel for each group of a `groupby`; None without groups.

    `labels` are those of the horizontal axes, and of the vertical ones; `layout` is that of
    `make_panels`.
    """
    listed = [members for _, members in groups]
    if not listed:
        return None
    figure, panels = make_panels(len(listed), **layout)
    for axes, members in zip(panels, listed, strict=True):
        draw_panel(axes, members)
        axes.set_title(title(members))
    for put, label in zip((figure.supxlabel, figure.supylabel), labels, strict=False):
        put(label)
    return with_legend(figure, handles)


def make_panels(
    count: int,
    most_columns: int = MAX_COLUMNS,
    *,
    around_in: float = 0.5,
    row_in: float = style.PANEL_HEIGHT_IN,
    share: bool | Literal["col"] = True,
    single: float = 0.7,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with that many axes in rows of a height, as high as a page at most.

    All of them `share` their vertical axis, or those of a column ("col"), or none do. A single
    column has that share of the width.
    """
    rows = ceil(count / most_columns)
    columns = ceil(count / rows)
    width = style.WIDTH_IN * (1 if columns > 1 else single)
    figure = Figure(figsize=(width, min(around_in + row_in * rows, style.MAX_HEIGHT_IN)))
    panels = figure.subplots(rows, columns, sharey=share, squeeze=False).flatten()
    for unused in panels[count:]:
        unused.remove()
    return figure, [*panels[:count]]


def draw_series(
    axes: Axes,
    settings: pd.DataFrame,
    x: str,
    column: str,
    looks: Mapping[str, Look],
    *,
    by: str = "series",
    hollow: bool = False,
    **instead: Any,
) -> None:
    """Draw a column of the settings of each `by` as a line, side by side; dotted if hollow.

    Its intervals are from `<column>_low` to `<column>_high`, where there are such. Parts of all
    looks may have others `instead`.
    """
    ends = [end if end in settings else column for end in (f"{column}_low", f"{column}_high")]
    lines = list(settings.groupby(by, sort=False))
    step = min(_DODGE_PT, _SPREAD_PT / max(len(lines), 1))
    figure: Any = axes.figure
    for place, (series, members) in enumerate(lines):
        look = looks[str(series)]._replace(**({"line": ":"} if hollow else {}) | instead)
        dodge = step * (place - (len(lines) - 1) / 2)
        shown = members[[x, column, *ends]].to_numpy(float, na_value=nan)
        at, values, lows, highs = shown.T
        axes.errorbar(
            at,
            values,
            # Blocks that agree to the last digit give ends a rounding error beyond the value.
            yerr=[(values - lows).clip(min=0), (highs - values).clip(min=0)],
            capsize=2,
            elinewidth=0.8,
            transform=axes.transData + ScaledTranslation(dodge / 72, 0, figure.dpi_scale_trans),
            **line_style(look, hollow=hollow),
        )
        known = values[np.isfinite(values)]
        if known.size:
            # Matplotlib ignores a shifted line when it chooses the limits of the axes.
            reach = shown[:, 1:].clip(known.min() / FURTHEST, known.max() * FURTHEST)
            axes.update_datalim(np.column_stack([np.repeat(at, 3), reach.ravel()]))
            axes.autoscale_view()


def line_style(look: Look, *, hollow: bool = False) -> dict[str, Any]:
    """Return the options that matplotlib draws a look with; hollow marks are white inside."""
    return {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": look.line,
        "markerfacecolor": "white" if hollow else look.colour,
        "markeredgecolor": look.colour if hollow else "white",
        "markeredgewidth": 0.8 if hollow else 0.4,
    }


def handle(look: Look, label: str, *, hollow: bool = False) -> Line2D:
    """Return the legend's sample of a line."""
    return Line2D([], [], label=label, **line_style(look, hollow=hollow))


def series_handles(settings: pd.DataFrame, looks: Mapping[str, Look]) -> list[Line2D]:
    """Return the legend's sample of each series of settings (columns series, label), in order."""
    named = settings.drop_duplicates("series")[["series", "label"]]
    return [handle(looks[series], short(label)) for series, label in named.itertuples(index=False)]


def with_legend(figure: Figure, handles: Sequence[Line2D]) -> Figure:
    """Return the figure with one legend over all panels; below it would hide the x label."""
    labels = [str(sample.get_label()) for sample in handles]
    # An entry takes its letters and about eight more for its sample and the gap; at 7 points
    # there are 17 letters to the inch.
    columns = max(1, int(17 * figure.get_figwidth()) // (max(map(len, labels), default=1) + 8))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
    return figure


def mark_no_change(axes: Axes) -> None:
    """Draw the line above which speculation pays."""
    axes.axhline(1, **REFERENCE_LINE, zorder=1)


def start_at_zero(axes: Axes) -> None:
    """Start the vertical axis at zero, with some room at its other end."""
    low, high = axes.get_ylim()
    if low != 0:  # zero: a panel that shares this axis has set it already
        axes.set_ylim(0, 1.04 * high)


def whole_numbers(axes: Axes) -> None:
    """Put the ticks of the horizontal axis at whole numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))


def powers_of_two(axes: Axes, values: Iterable[int]) -> None:
    """Make a logarithmic axis whose ticks are the values measured, and the only ones."""
    ticks = sorted({int(value) for value in values})
    axes.set_xscale("log", base=2)
    axes.set_xlim(ticks[0] / 1.3, ticks[-1] * 1.3)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:.0f}")
