"""The figure of the draft-time bound: what decoding took, against what its passes need."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from specmoe.figures.panels import add_legend, handle
from specmoe.figures.style import REFERENCE_COLOUR, WIDTH_IN, Look, applied, short, target_looks

HEIGHT_IN = 3.6
MARGIN = 1.3
FAMILY_WORDS = {"moe": "MoE", "dense": "dense"}
NOTHING_DRAFTED = "not measured in this campaign"


@applied()
def plot_required_time(frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Show every row of each campaign as a dot; below the diagonal no run can be.

    `frames` are `bounds.required_time`'s, by the campaign's words in the legend.
    """
    rows = _rows(frames)
    if rows.empty:
        figure = Figure(figsize=(WIDTH_IN / 2, 1))
        figure.text(0.5, 0.5, NOTHING_DRAFTED, ha="center", va="center", style="italic")
        return figure
    figure = Figure(figsize=(0.75 * WIDTH_IN, HEIGHT_IN))
    axes = figure.subplots()
    _mark_bound(axes, rows)
    handles = []
    for series, look in target_looks(rows).items():
        members = rows[rows["series"] == series]
        dots = replace(look, line="none")
        _scatter(axes, members, dots)
        first = members.iloc[0]
        words = f"{short(first['campaign'])}, {FAMILY_WORDS[first['family']]} ({len(members)})"
        handles.append(handle(dots, words))
    axes.set_xlabel("time its rounds and drafted tokens need one by one (s)")
    axes.set_ylabel("decode time in the row (s)")
    add_legend(figure, handles)
    return figure


def _rows(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all campaigns with both times in seconds; a series is one family's."""
    columns = ["campaign", "family", "series", "decode_s", "required_s"]
    listed = [
        frame.assign(
            campaign=campaign,
            series=campaign + " " + frame["family"],
            decode_s=frame["decode_ms"].astype(float) / 1000,
            required_s=frame["required_ms"].astype(float) / 1000,
        )[columns]
        for campaign, frame in frames.items()
        if not frame.empty
    ]
    return pd.concat(listed, ignore_index=True) if listed else pd.DataFrame(columns=columns)


def _scatter(axes: Axes, members: pd.DataFrame, look: Look) -> None:
    axes.plot(
        members["required_s"],
        members["decode_s"],
        linestyle="none",
        marker=look.marker,
        markersize=4,
        color=look.colour,
        markeredgecolor="white",
        markeredgewidth=0.3,
        zorder=2,
    )


def _mark_bound(axes: Axes, rows: pd.DataFrame) -> None:
    """Make both axes logarithmic and alike, and grey the part that no run can be in."""
    times = rows[["required_s", "decode_s"]]
    low, high = float(times.min().min()) / MARGIN, float(times.max().max()) * MARGIN
    diagonal = [low, high]
    axes.fill_between(diagonal, low, diagonal, color="#EFEFEF", linewidth=0, zorder=0)
    axes.plot(diagonal, diagonal, color=REFERENCE_COLOUR, linestyle=(0, (6, 2)), linewidth=0.9)
    axes.annotate(
        "faster than its own passes",
        xy=(0.98, 0.03),
        xycoords="axes fraction",
        ha="right",
        va="bottom",
        fontsize=7,
        style="italic",
        color=REFERENCE_COLOUR,
    )
    for axis, scale, limit in (
        (axes.xaxis, axes.set_xscale, axes.set_xlim),
        (axes.yaxis, axes.set_yscale, axes.set_ylim),
    ):
        scale("log")
        limit(low, high)
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
