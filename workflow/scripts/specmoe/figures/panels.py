"""What figures are drawn with: panels, lines of cells with their intervals, axes, legends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, nan
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from specmoe.figures.style import (
    MAX_HEIGHT_IN,
    PANEL_HEIGHT_IN,
    REFERENCE_COLOUR,
    WIDTH_IN,
    Look,
    legend_columns,
)

MAX_COLUMNS = 3
LINE_DODGE_PT = 3.0
# Beyond this ratio of largest to smallest, a linear axis would crowd the small values.
LOG_RATIO = 5


@dataclass(frozen=True)
class Quantity:
    """What a vertical axis shows: a column, its words, the columns of its interval's ends."""

    column: str
    words: str
    low: str | None = None
    high: str | None = None


def make_panels(count: int, *, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure with that many axes, at most MAX_COLUMNS side by side."""
    rows = ceil(count / MAX_COLUMNS)
    columns = ceil(count / rows)
    width = WIDTH_IN if columns > 1 else 0.6 * WIDTH_IN
    figure = Figure(figsize=(width, min(0.5 + PANEL_HEIGHT_IN * rows, MAX_HEIGHT_IN)))
    panels = list(figure.subplots(rows, columns, sharey=sharey, squeeze=False).flatten())
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def dodged(groups: Iterable[Any], step: float = LINE_DODGE_PT) -> list[tuple[Any, float]]:
    """Return the groups, each with its shift in points, so that equal values stay apart."""
    listed = list(groups)
    middle = (len(listed) - 1) / 2
    return [(group, step * (index - middle)) for index, group in enumerate(listed)]


def draw(
    axes: Axes,
    cells: pd.DataFrame,
    x: str,
    quantity: Quantity,
    look: Look,
    dodge: float,
    *,
    hollow: bool = False,
) -> None:
    """Draw one line of cells with its intervals, shifted sideways by `dodge` points."""
    column = quantity.column
    columns = [x, column, quantity.low or column, quantity.high or column]
    shown = cells[columns].to_numpy(float, na_value=nan)
    at, values, lows, highs = shown.T
    axes.errorbar(
        at,
        values,
        # Blocks that agree to the last digit give ends a rounding error beyond the value.
        yerr=[(values - lows).clip(min=0), (highs - values).clip(min=0)],
        capsize=2,
        elinewidth=0.8,
        transform=_shifted(axes, dodge),
        **_line(look, hollow=hollow),
    )
    # Of a shifted line matplotlib does not ask how far it reaches.
    reach = [(place, end) for place, *ends in shown for end in ends if isfinite(end)]
    if reach:
        axes.update_datalim(reach)
        axes.autoscale_view()


def _shifted(axes: Axes, points: float) -> Transform:
    figure: Any = axes.figure
    return axes.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def _line(look: Look, *, hollow: bool = False) -> dict[str, Any]:
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
    return Line2D([], [], label=label, **_line(look, hollow=hollow))


def add_legend(figure: Figure, handles: Sequence[Line2D | Patch]) -> None:
    """Put one legend over all panels; under them it would hide the figure's own x label."""
    labels = [str(sample.get_label()) for sample in handles]
    columns = legend_columns(labels, figure.get_figwidth())
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def mark_no_change(axes: Axes) -> None:
    """Draw the line above which a draft pays."""
    axes.axhline(1, color=REFERENCE_COLOUR, linewidth=0.9, linestyle=(0, (6, 2)), zorder=1)


def start_at_zero(axes: Axes) -> None:
    """Let the vertical axis start at zero, with some room at its other end."""
    low, high = axes.get_ylim()
    if low != 0:  # else done already for a panel that shares this axis
        axes.set_ylim(0, 1.04 * high)


def powers_of_two(axes: Axes, values: Iterable[int]) -> None:
    """Make a logarithmic axis whose ticks are the values measured."""
    ticks = sorted({int(value) for value in values})
    axes.set_xscale("log", base=2)
    axes.set_xlim(ticks[0] / 1.3, ticks[-1] * 1.3)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))


def size_axis(axes: Axes, values: pd.Series) -> None:
    """Make an axis of sizes, logarithmic if they spread wide."""
    low, high = float(values.min()), float(values.max())
    if high > LOG_RATIO * low:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.4, high * 1.4)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        margin = 0.15 * (high - low) or 0.15 * high
        axes.set_xlim(low - margin, high + margin)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
