"""Figures of what a campaign varies: prompt length, temperature of sampling, way of measuring."""

from dataclasses import replace

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from specmoe.analysis.filters import cells_by_way, length_cells
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.figures.panels import (
    ACCEPTANCE,
    GAMMA_WORDS,
    SPEEDUP,
    PlottedColumn,
    add_legend,
    draw_points,
    handle,
    make_panels,
    mark_no_change,
    start_at_zero,
)
from specmoe.figures.style import WIDTH_IN, looks_of, short, target_looks

_ROW_HEIGHT_IN = 1.7
# The axes are linear below these, so that they can show zero.
_LEAST_ACCEPTANCE, _LEAST_FAILURES = 1e-3, 1.0

_MOST_LINES = 12
_RATE = PlottedColumn("tokens_per_second", "tokens per second")
_BASELINE_RATE = PlottedColumn("baseline_tokens_per_second", _RATE.words)
_REPORTED = PlottedColumn("speedup", "speedup it reports", "speedup_low", "speedup_high")
_FAILURES = PlottedColumn("decode_failures", "failed decodes a run")
_OF_PROTOCOLS = (ACCEPTANCE, _REPORTED, _FAILURES)


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


def plot_protocols(analysis: Analysis) -> Figure | None:
    """Show the results of each way of measuring the same cells, or None with a single way.

    A row of panels for each target and draft, a line for each way, over draft length.
    """
    cells = cells_by_way(analysis)
    if cells.empty:
        return None
    cells["series"] = cells["way"]
    rows = [members for _, members in cells.groupby(["target_rank", "draft_rank"])]
    figure = Figure(figsize=(WIDTH_IN, 0.7 + _ROW_HEIGHT_IN * len(rows)))
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex=True, sharey="col")
    looks = looks_of(cells["way"].unique())
    for panels, members in zip(grid, rows, strict=True):
        here = {way: looks[way] for way in members["series"].unique()}
        for axes, plotted in zip(panels, _OF_PROTOCOLS, strict=True):
            draw_points(axes, members, "gamma", plotted, here, categories=cells["gamma"])
        first = members.iloc[0]
        labels = short(first["target_label"]), short(first["draft_label"])
        panels[0].set_ylabel("{}\ndraft {}".format(*labels))
    for axes, plotted in zip(grid[0], _OF_PROTOCOLS, strict=True):
        axes.set_title(plotted.words)
    most = max(float(cells["decode_failures"].max()), _LEAST_FAILURES)
    for acceptance, speedup, failures in grid:
        acceptance.set_yscale("symlog", linthresh=_LEAST_ACCEPTANCE)
        acceptance.set_ylim(0, 1.5)
        acceptance.set_yticks([0, 1e-3, 1e-2, 1e-1, 1], minor=False)
        acceptance.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        mark_no_change(speedup)
        failures.set_yscale("symlog", linthresh=_LEAST_FAILURES)
        failures.set_ylim(-0.4, 3 * most)  # room for the markers of both ends
        failures.yaxis.set_major_formatter("{x:g}")
        for axes in (acceptance, failures):
            axes.minorticks_off()
    start_at_zero(grid[0][1])
    figure.supxlabel(GAMMA_WORDS)
    add_legend(figure, [handle(look, way) for way, look in looks.items()])
    return figure


def _setting(row: Record) -> str:
    return f"{short(row['label'])}, draft {short(row['draft_label'])}, γ = {row['gamma']}"
