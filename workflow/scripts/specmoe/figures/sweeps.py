"""Figures of what a suite varies: prompt length, or the temperature of sampling."""

from dataclasses import replace

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from specmoe.analysis.filters import length_cells
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.figures.panels import (
    ACCEPTANCE,
    SPEEDUP,
    PlottedColumn,
    add_legend,
    draw_points,
    handle,
    make_panels,
    mark_no_change,
    start_at_zero,
)
from specmoe.figures.style import short, target_looks

_MOST_LINES = 12
_RATE = PlottedColumn("tokens_per_second", "tokens per second")
_BASELINE_RATE = PlottedColumn("baseline_tokens_per_second", _RATE.words)


def plot_prompt_lengths(analysis: Analysis) -> Figure | None:
    """Show rate and speedup, a line for each target, draft and γ.

    Returns None without a sweep, or with more lines than can be told apart: the table has them all.
    """
    cells = length_cells(analysis)
    cells["alone"] = cells["series"]
    cells["series"] = cells["series"] + " " + cells["draft"] + " " + cells["gamma"].astype(str)
    if not 0 < cells["series"].nunique() <= _MOST_LINES:
        return None
    looks = target_looks(cells)
    # The lines of a target share its baselines, which the first of them shows.
    firsts = cells.drop_duplicates("alone")["series"]
    plain = {series: replace(looks[series], line=":") for series in firsts}
    baselines = cells[cells["series"].isin(firsts)]
    lengths = cells["n_prompt"]
    figure, (left, right) = make_panels(2, sharey=False)
    draw_points(left, baselines, "n_prompt", _BASELINE_RATE, plain, categories=lengths, hollow=True)
    draw_points(left, cells, "n_prompt", _RATE, looks, categories=lengths)
    draw_points(right, cells, "n_prompt", SPEEDUP, looks, categories=lengths)
    left.set_ylabel(_RATE.words)
    right.set_ylabel(SPEEDUP.words)
    figure.supxlabel(f"prompt length ({analysis.campaign['length_unit'].iloc[0]})")
    start_at_zero(left)
    mark_no_change(right)
    handles = []
    for row in records(cells.drop_duplicates("series")):
        if row["series"] in plain:
            words = f"{short(row['label'])}, without draft"
            handles.append(handle(plain[row["series"]], words, hollow=True))
        handles.append(handle(looks[row["series"]], _setting(row)))
    add_legend(figure, handles)
    return figure


def plot_temperatures(analysis: Analysis) -> Figure | None:
    """Show what temperature does, or None if nothing was sampled.

    A line for each target, draft and γ.
    """
    cells = analysis.temperatures
    if cells.empty:
        return None
    cells["series"] = cells["series"] + " " + cells["draft"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)
    figure, (left, right) = make_panels(2, sharey=False)
    for axes, plotted in [(left, ACCEPTANCE), (right, SPEEDUP)]:
        draw_points(axes, cells, "temperature", plotted, looks, categories=cells["temperature"])
        axes.set_ylabel(plotted.words)
        start_at_zero(axes)
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    mark_no_change(right)
    figure.supxlabel("temperature")
    rows = records(cells.drop_duplicates("series"))
    add_legend(figure, [handle(looks[row["series"]], _setting(row)) for row in rows])
    return figure


def _setting(row: Record) -> str:
    return f"{short(row['label'])}, draft {short(row['draft_label'])}, γ = {row['gamma']}"
