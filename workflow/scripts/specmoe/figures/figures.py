"""The paper's figures, each from the analysis alone; `save` writes the same bytes every time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import length_cells, ordered_baselines, table, text_cells
from specmoe.figures.costs import (
    plot_break_even,
    plot_predicted_speedup,
    plot_roofline,
    plot_verification_cost,
)
from specmoe.figures.panels import (
    Quantity,
    add_legend,
    dodged,
    draw,
    handle,
    make_panels,
    mark_no_change,
    powers_of_two,
    size_axis,
    start_at_zero,
)
from specmoe.figures.protocols import plot_protocols
from specmoe.figures.required_time import plot_required_time
from specmoe.figures.side_by_side import plot_side_by_side
from specmoe.figures.style import (
    BASELINE_COLOUR,
    MAX_HEIGHT_IN,
    PANEL_HEIGHT_IN,
    WIDTH_IN,
    Look,
    applied,
    draft_fills,
    short,
    target_looks,
)
from specmoe.figures.temperatures import plot_temperatures
from specmoe.figures.throughput import break_rows, draw_bars, group_bars
from specmoe.figures.types import plot_types

PNG_DPI = 200
POINT_DODGE_PT = 7.0
NOT_MEASURED = "not measured in this campaign"

RATE = "tokens per second"
_SPEEDUP = Quantity("speedup", "speedup over no draft", "speedup_low", "speedup_high")
_ACCEPTANCE = Quantity("acceptance_rate", "acceptance rate")
_RATE = Quantity("tokens_per_second", RATE)
_BASELINE_RATE = Quantity("baseline_tokens_per_second", RATE)


@applied()
def speedup_by_active_parameters(analysis: Analysis) -> Figure:
    """Show speedup against the parameters one token uses, per draft at its middle γ."""
    return _speedup_by_parameters(analysis, "parameters_active", "active parameters")


@applied()
def speedup_by_total_parameters(analysis: Analysis) -> Figure:
    """Show speedup against all parameters of the target, per draft at its middle γ."""
    return _speedup_by_parameters(analysis, "parameters_total", "total parameters")


@applied()
def speedup_by_gamma(analysis: Analysis) -> Figure:
    """Show speedup against draft length: a panel per draft, a line per target, with intervals."""
    return _by_gamma(analysis, _SPEEDUP, mark_no_change)


@applied()
def acceptance_by_gamma(analysis: Analysis) -> Figure:
    """Show acceptance rate against draft length: a panel per draft, a line per target."""
    return _by_gamma(analysis, _ACCEPTANCE, _show_percent)


@applied()
def throughput(analysis: Analysis) -> Figure:
    """Show rates as bars: each target without a draft, then with each draft and γ; ± sd."""
    cells, baselines = text_cells(analysis), ordered_baselines(analysis)
    groups = group_bars(cells, baselines)
    if not groups:
        return _not_measured()
    rows = break_rows(groups)
    figure = Figure(figsize=(WIDTH_IN, min(0.7 + PANEL_HEIGHT_IN * len(rows), MAX_HEIGHT_IN)))
    panels = figure.subplots(len(rows), 1, sharey=True, squeeze=False).flatten()
    for axes, row in zip(panels, rows, strict=True):
        draw_bars(axes, row)
    figure.supylabel(RATE)
    drafts = cells.sort_values("draft_rank").drop_duplicates("draft")
    fills = draft_fills(drafts["draft"])
    handles = [
        Patch(facecolor=BASELINE_COLOUR, edgecolor="black", label="without draft"),
        *(
            Patch(
                facecolor=fills[draft].colour,
                edgecolor="black",
                hatch=fills[draft].hatch,
                label=f"draft {short(label)}",
            )
            for draft, label in drafts[["draft", "draft_label"]].itertuples(index=False)
        ),
    ]
    add_legend(figure, handles)
    return figure


@applied()
def prompt_lengths(analysis: Analysis) -> Figure:
    """Show rate and speedup against prompt length; a line per target, draft and γ of the sweep."""
    cells = length_cells(analysis)
    if cells.empty:
        return _not_measured()
    cells["alone"] = cells["series"]
    cells["series"] = cells["series"] + " " + cells["draft"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)
    figure, (left, right) = make_panels(2, sharey=False)
    handles = {}
    for (series, members), dodge in dodged(cells.groupby("series", sort=False)):
        look, first = looks[series], members.iloc[0]
        label = short(first["label"])
        if first["alone"] not in handles:
            plain = Look(look.colour, look.marker, ":")
            draw(left, members, "n_prompt", _BASELINE_RATE, plain, dodge, hollow=True)
            handles[first["alone"]] = handle(plain, f"{label}, without draft", hollow=True)
        draw(left, members, "n_prompt", _RATE, look, dodge)
        draw(right, members, "n_prompt", _SPEEDUP, look, dodge)
        draft = f"draft {short(first['draft_label'])}, γ = {first['gamma']}"
        handles[series] = handle(look, f"{label}, {draft}")
    for axes, quantity in [(left, _RATE), (right, _SPEEDUP)]:
        powers_of_two(axes, cells["n_prompt"])
        axes.set_ylabel(quantity.words)
    figure.supxlabel(f"prompt length ({analysis.campaign['length_unit'].iloc[0]})")
    start_at_zero(left)
    mark_no_change(right)
    add_legend(figure, list(handles.values()))
    return figure


def save(figure: Figure, stem: Path) -> None:
    """Write `<stem>.pdf` and `<stem>.png`; equal figures give equal bytes."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with applied():
        figure.savefig(f"{stem}.pdf", metadata={"CreationDate": None})
        figure.savefig(f"{stem}.png", dpi=PNG_DPI)


def drawn(figure: Figure) -> bool:
    """Return whether a figure shows anything: one of what was not measured has no axes."""
    return bool(figure.axes)


def _not_measured() -> Figure:
    figure = Figure(figsize=(WIDTH_IN / 2, 1))
    figure.text(0.5, 0.5, NOT_MEASURED, ha="center", va="center", style="italic")
    return figure


def _panels_by_draft(
    cells: pd.DataFrame, looks: Mapping[str, Look]
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure with one panel per draft, and each panel with its draft's cells."""
    groups = [members for _, members in cells.groupby("draft_rank")]
    figure, panels = make_panels(len(groups))
    add_legend(
        figure,
        [
            handle(look, short(cells.loc[cells["series"] == series, "label"].iloc[0]))
            for series, look in looks.items()
        ],
    )
    return figure, list(zip(panels, groups, strict=True))


def _by_gamma(analysis: Analysis, quantity: Quantity, finish: Callable[[Axes], None]) -> Figure:
    cells = text_cells(analysis)
    if cells.empty:
        return _not_measured()
    looks = target_looks(cells)
    figure, panels = _panels_by_draft(cells, looks)
    for axes, members in panels:
        for (series, line), dodge in dodged(members.groupby("series", sort=False)):
            draw(axes, line, "gamma", quantity, looks[series], dodge)
        powers_of_two(axes, cells["gamma"])
        axes.set_title(f"draft {short(members['draft_label'].iloc[0])}")
    # Panels share their vertical axis, which must have seen all lines before it is fixed.
    for axes, _ in panels:
        finish(axes)
    figure.supxlabel("draft length γ (tokens)")
    figure.supylabel(quantity.words)
    return figure


def _speedup_by_parameters(analysis: Analysis, column: str, words: str) -> Figure:
    cells = text_cells(analysis)
    if cells["target"].nunique() < 2:
        return _not_measured()
    divisor, unit = (1e9, "billions") if cells[column].max() >= 1e9 else (1e6, "millions")
    cells[column] = cells[column] / divisor
    looks = {series: replace(look, line="none") for series, look in target_looks(cells).items()}
    figure, panels = _panels_by_draft(cells, looks)
    for axes, of_draft in panels:
        gamma = _middle(of_draft["gamma"])
        members = of_draft[of_draft["gamma"] == gamma]
        _join_dense(axes, members, column)
        for _, beside in members.groupby(column):
            for (series, point), dodge in dodged(
                beside.groupby("series", sort=False), POINT_DODGE_PT
            ):
                draw(axes, point, column, _SPEEDUP, looks[series], dodge)
        size_axis(axes, cells[column])
        axes.set_title(f"draft {short(members['draft_label'].iloc[0])}, γ = {gamma}")
        mark_no_change(axes)
    figure.supxlabel(f"{words} of the target ({unit})")
    figure.supylabel(_SPEEDUP.words)
    return figure


def _middle(values: Iterable[int]) -> int:
    distinct = sorted(set(values))
    return distinct[(len(distinct) - 1) // 2]


def _join_dense(axes: Axes, members: pd.DataFrame, column: str) -> None:
    """Join the dense targets, so that one sees on which side of them an MoE lies."""
    dense = members[members["family"] == "dense"].sort_values(column)
    axes.plot(dense[column], dense["speedup"], color="#C9A98F", linewidth=0.8, zorder=1)


def _show_percent(axes: Axes) -> None:
    start_at_zero(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def required_time(analysis: Analysis) -> Figure:
    """Show the time of every run with a draft against the time that its own passes need."""
    campaigns = table(analysis, "required_time").groupby("campaign", sort=False)
    return plot_required_time({str(name): members for name, members in campaigns})


def temperatures(analysis: Analysis) -> Figure:
    """Show acceptance rate and speedup against temperature, where runs were sampled."""
    return plot_temperatures(analysis) or _not_measured()


def types(analysis: Analysis) -> Figure:
    """Show speedup against bytes read, where a network was measured in files of several types."""
    return plot_types(analysis) or _not_measured()


def verification_cost(analysis: Analysis) -> Figure:
    """Show what a pass of the target costs against its width."""
    return plot_verification_cost(analysis) or _not_measured()


def predicted_speedup(analysis: Analysis) -> Figure:
    """Show the speedups that the cost model predicts against those measured."""
    return plot_predicted_speedup(analysis) or _not_measured()


def break_even(analysis: Analysis) -> Figure:
    """Show the acceptance rate from which on a draft pays, and the one measured, against γ."""
    return plot_break_even(analysis) or _not_measured()


def roofline(analysis: Analysis) -> Figure:
    """Show how near passes come to the time that reading their bytes needs."""
    return plot_roofline(analysis) or _not_measured()


def protocols(analysis: Analysis) -> Figure:
    """Show what each way of measuring gives, where the same was measured in several ways."""
    return plot_protocols(analysis) or _not_measured()


def side_by_side(analysis: Analysis) -> Figure:
    """Show the speedups of this campaign and of those it is compared with."""
    return plot_side_by_side(analysis) or _not_measured()


FIGURES: dict[str, Callable[[Analysis], Figure]] = {
    function.__name__: function
    for function in (
        speedup_by_active_parameters,
        speedup_by_total_parameters,
        speedup_by_gamma,
        throughput,
        acceptance_by_gamma,
        prompt_lengths,
        required_time,
        temperatures,
        types,
        verification_cost,
        predicted_speedup,
        break_even,
        roofline,
        protocols,
        side_by_side,
    )
}
