"""The figure of the draft-time bound: decode time against the time that the passes need."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import REFERENCE_WORDS, add_legend, alike_logarithms, handle, scatter
from specmoe.figures.style import WIDTH_IN, short, target_looks

HEIGHT_IN = 3.3
MARGIN = 1.3
FAMILY_WORDS = {"moe": "MoE", "dense": "dense"}


def plot_required_time(analysis: Analysis) -> Figure | None:
    """Show every run with a draft of each campaign as a dot, or None if there are none.

    No run can be below the diagonal.
    """
    rows = _rows(analysis.required_time)
    if rows.empty:
        return None
    figure = Figure(figsize=(0.75 * WIDTH_IN, HEIGHT_IN))
    axes = figure.subplots()
    _mark_bound(axes, rows)
    handles = []
    for series, look in target_looks(rows).items():
        members = rows[rows["series"] == series]
        dots = replace(look, line="none")
        scatter(axes, members["required_s"], members["decode_s"], dots)
        first = members.iloc[0]
        words = f"{short(first['campaign'])}, {FAMILY_WORDS[first['family']]} ({len(members)})"
        handles.append(handle(dots, words))
    axes.set_xlabel("time its rounds and drafted tokens need one by one (s)")
    axes.set_ylabel("decode time in the row (s)")
    add_legend(figure, handles)
    return figure


def _rows(times: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with both times in seconds; a series is a family of one campaign.

    Runs in which nothing was drafted need no time, and a logarithmic axis has no place for them.
    """
    times = times[times["required_ms"] > 0]
    return times.assign(
        series=times["campaign"] + " " + times["family"],
        decode_s=times["decode_ms"].astype(float) / 1000,
        required_s=times["required_ms"].astype(float) / 1000,
    )


def _mark_bound(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the diagonal, and grey the part where no run can be."""
    diagonal = alike_logarithms(axes, rows[["required_s", "decode_s"]], MARGIN)
    axes.fill_between(diagonal, diagonal[0], diagonal, color="#EFEFEF", linewidth=0, zorder=0)
    words = "faster than its own passes"
    axes.annotate(words, (0.98, 0.03), xycoords="axes fraction", va="bottom", **REFERENCE_WORDS)
