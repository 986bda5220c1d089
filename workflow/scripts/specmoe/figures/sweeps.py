"""Figures of what a campaign varies: the factor of a suite, and the way of measuring."""

from itertools import product

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from specmoe.analysis.filters import cells_by_way
from specmoe.analysis.registry import Analysis
from specmoe.figures.panels import (
    ACCEPTANCE,
    GAMMA_WORDS,
    SPEEDUP,
    PlottedColumn,
    add_legend,
    draw_series,
    handle,
    make_panels,
    mark_no_change,
    powers_of_two,
    start_at_zero,
    target_title,
)
from specmoe.figures.style import looks_of, short

_ROW_HEIGHT_IN = 1.7
# The axes are linear below these, so that they can show zero.
_LEAST_ACCEPTANCE, _LEAST_FAILURES = 1e-3, 1.0

_MOST_LINES = 24
_LOGARITHMIC = 16  # largest level over the smallest
_REPORTED = PlottedColumn("speedup", "speedup it reports", "speedup_low", "speedup_high")
_FAILURES = PlottedColumn("decode_failures", "failed decodes a run")
_OF_PROTOCOLS = (ACCEPTANCE, _REPORTED, _FAILURES)


def plot_levels(analysis: Analysis) -> Figure | None:
    """Show speedup against the level of what a suite varies, or None if no suite has two levels.

    A panel for each suite and target, a line for each draft and γ. Numbers are on their scale.
    Returns None with more lines than can be told apart, too: the table has them all.
    """
    cells = analysis.levels
    cells = cells[cells.groupby("series")["level"].transform("nunique") > 1]
    if not 0 < cells["setting"].nunique() <= _MOST_LINES:
        return None
    ordered = cells.sort_values(["draft_rank", "gamma"], kind="stable")
    looks = looks_of(ordered["setting"].unique())
    groups = [members for _, members in cells.groupby("series", sort=False)]
    figure, panels = make_panels(len(groups), kinds=0)
    for axes, members in zip(panels, groups, strict=True):
        members = members.assign(series=members["setting"])
        draw_series(axes, members, "level_rank", SPEEDUP, looks)
        ticks = members.drop_duplicates("level_rank").sort_values("level_rank")
        least, most = ticks["level_rank"].agg(["min", "max"])
        if least >= 1 and most > _LOGARITHMIC * least:
            axes.set_xscale("log", base=2)
        axes.set_xticks(ticks["level_rank"], ticks["level"])
        if pd.to_numeric(ticks["level"], errors="coerce").isna().any():  # words may be long
            axes.tick_params("x", labelrotation=20)
        axes.minorticks_off()
        axes.set_title(target_title(members).replace(" (suite ", "\n(suite "))
        axes.set_xlabel(members["factor_label"].iloc[0])
        mark_no_change(axes)
        start_at_zero(axes)
    figure.supylabel(SPEEDUP.words)
    add_legend(figure, [handle(look, short(setting)) for setting, look in looks.items()])
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
    looks = looks_of(cells["way"].unique())
    columns = len(_OF_PROTOCOLS)
    figure, panels = make_panels(
        columns * len(rows), columns, around_in=0.7, row_in=_ROW_HEIGHT_IN, kinds=columns
    )
    for axes, (members, plotted) in zip(panels, product(rows, _OF_PROTOCOLS), strict=True):
        draw_series(axes, members, "gamma", plotted, looks)
        powers_of_two(axes, cells["gamma"])
        axes.set_title(plotted.words)
        if plotted is ACCEPTANCE:
            first = members.iloc[0]
            labels = short(first["target_label"]), short(first["draft_label"])
            axes.set_ylabel("{}\ndraft {}".format(*labels))
    most = max(float(cells["decode_failures"].max()), _LEAST_FAILURES)
    for acceptance, speedup, failures in zip(*[iter(panels)] * columns, strict=True):
        acceptance.set_yscale("symlog", linthresh=_LEAST_ACCEPTANCE)
        acceptance.set_ylim(0, 1.5)
        acceptance.set_yticks([0, 1e-3, 1e-2, 1e-1, 1], minor=False)
        acceptance.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        start_at_zero(speedup)
        mark_no_change(speedup)
        failures.set_yscale("symlog", linthresh=_LEAST_FAILURES)
        failures.set_ylim(-0.4, 3 * most)  # room for the markers of both ends
        failures.yaxis.set_major_formatter("{x:g}")
        for axes in (acceptance, failures):
            axes.yaxis.set_minor_locator(NullLocator())
    figure.supxlabel(GAMMA_WORDS)
    add_legend(figure, [handle(look, way) for way, look in looks.items()])
    return figure
