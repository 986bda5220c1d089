"""The figures of the cost model: passes against width, predictions, break-even, the roofline."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled_costs import break_even_cells, pass_costs, predicted_cells
from specmoe.figures.panels import (
    Quantity,
    add_legend,
    dodged,
    draw,
    handle,
    make_panels,
    powers_of_two,
    start_at_zero,
)
from specmoe.figures.style import REFERENCE_COLOUR, Look, applied, short, target_looks

WIDTH_WORDS = "width of the pass (tokens)"
MARGIN = 1.15

_STEPS = Quantity("steps", "time of a pass (single-token steps)", "steps_low", "steps_high")
_EXPERTS = Quantity("experts", "distinct experts a layer, expected")
_MS = Quantity("ms", "time of a pass (ms)", "ms_low", "ms_high")
_BOUND_MS = Quantity("bound_ms", "")
_SHARE = Quantity("bound_share", "share of the bound reached")
_BREAK_EVEN = Quantity("break_even", "acceptance rate", "break_even_low", "break_even_high")
_ACCEPTANCE = Quantity("acceptance_rate", "acceptance rate")
# Of each panel: the column of its predictions, and its title.
_PREDICTIONS = {
    "predicted": "cost model",
    "equation_1": "equation 1 of the study",
    "equation_2": "equation 2 of the study",
}


@applied()
def plot_verification_cost(analysis: Analysis) -> Figure | None:
    """Show v against width, beside the experts an MoE visits, or None if v was not measured."""
    passes = pass_costs(analysis)
    if passes.empty:
        return None
    looks = target_looks(passes)
    routed = passes[passes["experts"].notna()]
    figure, panels = make_panels(1 if routed.empty else 2, sharey=False)
    for (series, members), dodge in dodged(passes.groupby("series", sort=False)):
        draw(panels[0], members, "width", _STEPS, looks[series], dodge)
    _mark_one_by_one(panels[0], passes)
    panels[0].set_ylabel(_STEPS.words)
    for axes in panels[1:]:
        for (series, members), dodge in dodged(routed.groupby("series", sort=False)):
            draw(axes, members, "width", _EXPERTS, looks[series], dodge)
        axes.set_ylabel(_EXPERTS.words)
        start_at_zero(axes)
    for axes in panels:
        powers_of_two(axes, passes["width"].astype(int))
    figure.supxlabel(WIDTH_WORDS)
    add_legend(figure, _handles(passes, looks))
    return figure


@applied()
def plot_predicted_speedup(analysis: Analysis) -> Figure | None:
    """Show predicted against measured speedup, a dot for each cell, or None without a prediction.

    Beside the cost model's predictions are those of the study's two equations. Hollow dots had
    passes wider than all that were measured.
    """
    cells = predicted_cells(analysis)
    if cells.empty:
        return None
    looks = {series: replace(look, line="none") for series, look in target_looks(cells).items()}
    figure, panels = make_panels(len(_PREDICTIONS))
    shown = cells[["speedup", *_PREDICTIONS]].astype(float)
    limits = (float(shown.min().min()) / MARGIN, float(shown.max().max()) * MARGIN)
    for axes, (column, words) in zip(panels, _PREDICTIONS.items(), strict=True):
        axes.plot(limits, limits, color=REFERENCE_COLOUR, linestyle=(0, (6, 2)), linewidth=0.9)
        for (series, beyond), members in cells.groupby(["series", "extrapolated"], sort=False):
            _scatter(axes, members, column, looks[str(series)], hollow=bool(beyond))
        _alike_axes(axes, limits)
        axes.set_title(words)
    figure.supxlabel("measured speedup")
    figure.supylabel("predicted speedup")
    handles = _handles(cells, looks)
    if cells["extrapolated"].any():
        handles.append(handle(Look("#444444", "o", "none"), "wider than measured", hollow=True))
    add_legend(figure, handles)
    return figure


@applied()
def plot_break_even(analysis: Analysis) -> Figure | None:
    """Show the acceptance rate that a draft must reach, and what it reached, against γ.

    A panel for each target and draft. None if that was not measured.
    """
    cells = break_even_cells(analysis)
    if cells.empty:
        return None
    looks = target_looks(cells)
    groups = list(cells.groupby("series", sort=False))
    figure, panels = make_panels(len(groups))
    for axes, (series, members) in zip(panels, groups, strict=True):
        look = looks[str(series)]
        line = members.drop_duplicates("gamma")
        # Where some resamples never pay, the interval is open above.
        top = line["break_even_high"].fillna(1.0).where(line["break_even_low"].notna())
        line = line.assign(break_even_high=top)
        draw(axes, line, "gamma", _BREAK_EVEN, replace(look, line="-"), 0)
        never = line[line["break_even"].isna()]
        axes.plot(never["gamma"], [1.0] * len(never), marker="x", color="#B00020", linestyle="none")
        # Where acceptance is imposed, a suite has several rates at each γ.
        curves = members.dropna(subset="suite").groupby(
            ["suite", "imposed_acceptance"], sort=False, dropna=False
        )
        for (suite, _), of_curve in curves:
            draw(axes, of_curve, "gamma", _ACCEPTANCE, replace(look, line=":"), 0, hollow=True)
            last = of_curve.iloc[-1]
            axes.annotate(
                str(suite),
                (last["gamma"], last["acceptance_rate"]),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=6,
            )
        powers_of_two(axes, cells["gamma"])
        axes.set_ylim(-0.03, 1.06)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_title(short(members["label"].iloc[0]))
    figure.supxlabel("draft length γ (tokens)")
    figure.supylabel("acceptance rate")
    add_legend(figure, _break_even_handles(cells))
    return figure


@applied()
def plot_roofline(analysis: Analysis) -> Figure | None:
    """Show the time of passes against the time their bytes need, and the share of it reached.

    None if no pass was measured, or the machine's bandwidth is not known.
    """
    passes = pass_costs(analysis)
    passes = passes[passes["bound_ms"].notna()]
    if passes.empty:
        return None
    looks = target_looks(passes)
    figure, (times, reached) = make_panels(2, sharey=False)
    for (series, members), dodge in dodged(passes.groupby("series", sort=False)):
        look = looks[series]
        draw(times, members, "width", _MS, replace(look, line="-"), dodge)
        draw(times, members, "width", _BOUND_MS, replace(look, line=":"), dodge, hollow=True)
        draw(reached, members, "width", _SHARE, replace(look, line="-"), dodge)
    times.set_yscale("log")
    _plain_numbers(times)
    start_at_zero(reached)
    reached.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes, quantity in ((times, _MS), (reached, _SHARE)):
        axes.set_ylabel(quantity.words)
        powers_of_two(axes, passes["width"].astype(int))
    figure.supxlabel(WIDTH_WORDS)
    bound = handle(Look("#444444", "o", ":"), "its bytes over the bandwidth", hollow=True)
    add_legend(figure, [*_handles(passes, looks), bound])
    return figure


def _handles(rows: pd.DataFrame, looks: Mapping[str, Look]) -> list[Line2D]:
    named = rows.drop_duplicates("series")[["series", "label"]]
    return [handle(looks[series], short(label)) for series, label in named.itertuples(index=False)]


def _break_even_handles(cells: pd.DataFrame) -> list[Line2D]:
    grey = Look("#444444", "o", "-")
    handles = [handle(grey, "acceptance at which the speedup is 1")]
    if cells["suite"].notna().any():
        handles.append(handle(replace(grey, line=":"), "measured, by suite", hollow=True))
    if cells["break_even"].isna().any():
        handles.append(
            Line2D([], [], color="#B00020", marker="x", linestyle="none", label="never pays")
        )
    return handles


def _mark_one_by_one(axes: Axes, passes: pd.DataFrame) -> None:
    """Draw what passes would cost if every token took a step, and make the axis logarithmic."""
    widths = sorted(passes["width"].astype(int).unique())
    axes.plot(widths, widths, color=REFERENCE_COLOUR, linestyle=(0, (6, 2)), linewidth=0.9)
    middle = widths[len(widths) // 2]
    axes.annotate(
        "one by one",
        (middle, middle),
        xytext=(-3, 3),
        textcoords="offset points",
        ha="right",
        fontsize=7,
        style="italic",
        color=REFERENCE_COLOUR,
    )
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda steps, _: f"{steps:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _scatter(axes: Axes, cells: pd.DataFrame, column: str, look: Look, *, hollow: bool) -> None:
    values = cells[["speedup", column]].to_numpy(float)
    axes.plot(
        values[:, 0],
        values[:, 1],
        linestyle="none",
        marker=look.marker,
        markersize=4,
        markerfacecolor="white" if hollow else look.colour,
        markeredgecolor=look.colour if hollow else "white",
        markeredgewidth=0.8 if hollow else 0.3,
        zorder=2,
    )


def _alike_axes(axes: Axes, limits: tuple[float, float]) -> None:
    """Make both axes logarithmic and alike."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(limits)
    axes.set_ylim(limits)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _plain_numbers(axes: Axes) -> None:
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
