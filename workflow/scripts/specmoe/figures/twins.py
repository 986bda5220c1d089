"""The figure of twins: what the experts alone change, a row for each type of file."""

from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from specmoe.analysis.registry import Analysis
from specmoe.figures.costs import EVEN, EXPERTS, STEPS, WIDTH_WORDS
from specmoe.figures.panels import (
    SPEEDUP,
    add_legend,
    draw_series,
    handle,
    make_panels,
    mark_no_change,
    powers_of_two,
    series_handles,
    start_at_zero,
)
from specmoe.figures.style import Look, short, target_looks

_SPEEDUPS = ["speedup", "speedup_low", "speedup_high"]
Looks = dict[str, Look]


def plot_twins(analysis: Analysis) -> Figure | None:
    """Show passes, experts and speedups of MoEs beside those of their dense twins.

    A row for each dense model. Left the time of a pass and in the middle the distinct experts it
    visits against its width, hollow if routing is even; right the speedup against the acceptance
    that was imposed, at the middle γ. What was not measured of any is left out; None without all.
    """
    passes = analysis.twin_passes
    passes = passes.assign(series=passes["model"])
    routed = passes[passes["experts"].notna()]
    speedups = _at_imposed(analysis.twins)
    shown: list[tuple[pd.DataFrame, Callable[[Axes, pd.DataFrame, Looks], None]]] = [
        (passes, _draw_steps),
        (routed, _draw_experts),
        (speedups, _draw_speedups),
    ]
    shown = [(rows, draw) for rows, draw in shown if not rows.empty]
    if not shown:
        return None
    families = pd.concat([rows for rows, _ in shown]).drop_duplicates("series")
    looks = target_looks(families)
    names = families.groupby("dense_label", sort=False).size().index
    figure, panels = make_panels(len(names) * len(shown), len(shown), kinds=0)
    of_panels = ((name, *one) for name in names for one in shown)
    for axes, (name, rows, draw) in zip(panels, of_panels, strict=True):
        draw(axes, rows[rows["dense_label"] == name], looks)
        axes.set_title(short(name))
    even = handle(Look("#444444", "o", ":"), "if routing is even", hollow=True)
    add_legend(figure, [*series_handles(families, looks), *([] if routed.empty else [even])])
    return figure


def _at_imposed(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups at the middle γ of those imposed, of MoEs and of their dense twins."""
    cells = cells[cells["imposed_acceptance"].notna() & cells["gamma"].notna()]
    gammas = sorted(cells["gamma"].unique())
    if not gammas:
        return cells.assign(series=None)
    cells = cells[cells["gamma"] == gammas[len(gammas) // 2]]
    dense = cells.drop_duplicates(["dense", "suite", "draft", "imposed_acceptance"])
    dense = dense.assign(
        **{column: dense[f"dense_{column}"] for column in _SPEEDUPS},
        series=dense["dense"],
        label=dense["dense_label"],
        family="dense",
    )
    return pd.concat([dense, cells.assign(series=cells["target"], label=cells["target_label"])])


def _draw_steps(axes: Axes, rows: pd.DataFrame, looks: Looks) -> None:
    draw_series(axes, rows, "width", STEPS, looks)
    axes.set(xlabel=WIDTH_WORDS, ylabel=STEPS.words)
    powers_of_two(axes, rows["width"])
    start_at_zero(axes)


def _draw_experts(axes: Axes, rows: pd.DataFrame, looks: Looks) -> None:
    draw_series(axes, rows, "width", EXPERTS, looks)
    draw_series(axes, rows, "width", EVEN, looks, hollow=True)
    axes.set(xlabel=WIDTH_WORDS, ylabel=EXPERTS.words)
    powers_of_two(axes, rows["width"])
    start_at_zero(axes)


def _draw_speedups(axes: Axes, rows: pd.DataFrame, looks: Looks) -> None:
    draw_series(axes, rows, "imposed_acceptance", SPEEDUP, looks)
    gamma = rows["gamma"].iloc[0] if len(rows) else ""
    axes.set(xlabel=f"acceptance imposed, γ = {gamma}", ylabel=SPEEDUP.words)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    start_at_zero(axes)
    mark_no_change(axes)
