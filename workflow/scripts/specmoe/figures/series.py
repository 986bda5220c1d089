"""Figures with a panel for each draft or target, and a line for each series of cells in it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from specmoe.analysis.filters import cells_by_draft, drawn_side_by_side
from specmoe.analysis.registry import Analysis, records
from specmoe.figures.panels import (
    ACCEPTANCE,
    GAMMA_WORDS,
    SPEEDUP,
    PlottedColumn,
    dodged,
    draw,
    draw_panels,
    draw_points,
    draw_series,
    handle,
    mark_no_change,
    powers_of_two,
    series_handles,
    size_axis,
    start_at_zero,
    target_title,
)
from specmoe.figures.style import (
    REFERENCE_COLOUR,
    Look,
    compared_looks,
    looks_of,
    short,
    target_looks,
)

_THROUGHPUT = PlottedColumn(
    "throughput_ratio",
    "throughput over no draft",
    "throughput_ratio_low",
    "throughput_ratio_high",
)
_ACCEPTED = PlottedColumn("accepted", "accepted")
_POINT_DODGE_PT = 7.0
_SPREAD_PT = 6  # of the lines of a panel over positions, which keeps equal values apart
_BETWEEN = "\n"  # in no heading and no label
_BY_GAMMA = (GAMMA_WORDS, SPEEDUP.words)


def plot_speedup_by_gamma(analysis: Analysis) -> Figure | None:
    """Show speedup with its intervals, a line for each target, or None without drafts."""
    return _by_gamma(analysis, SPEEDUP, mark_no_change)


def plot_acceptance_by_gamma(analysis: Analysis) -> Figure | None:
    """Show the acceptance rate, a line for each target, or None without drafts."""
    return _by_gamma(analysis, ACCEPTANCE, _show_percent)


def plot_gamma_curves(analysis: Analysis) -> Figure | None:
    """Show the speedup predicted of every γ, with the measured ones as marks.

    A panel for each draft, a line for each target; None where no draft has read any text.
    """
    cells = analysis.gamma_curves
    if cells.empty:
        return None
    looks = target_looks(cells)

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        for (series, own), dodge in dodged(members.groupby("series", sort=False)):
            look = looks[str(series)]
            gammas, ends = own["gamma"], own[["predicted", "predicted_low", "predicted_high"]]
            curve, low, high = ends.to_numpy(float).T
            axes.plot(gammas, curve, color=look.colour, linestyle=look.line, linewidth=1)
            axes.fill_between(gammas, low, high, color=look.colour, alpha=0.15, linewidth=0)
            measured = own[own["speedup"].notna()]
            draw(axes, measured, "gamma", SPEEDUP, replace(look, line="none"), dodge)
        powers_of_two(axes, (2**power for power in range(6)))

    groups, handles = cells.groupby("draft_rank"), series_handles(cells, looks)
    return draw_panels(groups, draw_panel, _draft, _BY_GAMMA, handles, mark_no_change)


def plot_speedup_by_active_parameters(analysis: Analysis) -> Figure | None:
    """Show speedup against the parameters that one token uses, or None with a single target."""
    return _by_parameters(analysis, "parameters_active", "active parameters")


def plot_speedup_by_total_parameters(analysis: Analysis) -> Figure | None:
    """Show speedup against all parameters of the target, or None with a single target."""
    return _by_parameters(analysis, "parameters_total", "total parameters")


def plot_side_by_side(analysis: Analysis) -> Figure | None:
    """Show the speedups of several campaigns against draft length, or None if only one has any.

    The panels are those of `drawn_side_by_side`. A line for each campaign and draft. The audit
    marks runs of hollow dots.
    """
    cells = drawn_side_by_side(analysis)
    if cells.empty:
        return None
    listed = analysis.compared_campaigns["heading"]
    headings = listed[listed.isin(cells["heading"])].tolist()
    drafts = cells["draft_label"].drop_duplicates().tolist()
    pairs = compared_looks(headings, drafts)
    looks = {f"{heading}{_BETWEEN}{draft}": look for (heading, draft), look in pairs.items()}
    cells["series"] = cells["heading"] + _BETWEEN + cells["draft_label"]

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        here, gammas = _looks_in(members, looks), cells["gamma"]
        draw_points(axes, members, "gamma", SPEEDUP, here, categories=gammas)
        marked = members[members["marked"] > 0]
        if not marked.empty:
            dots = {series: replace(look, line="none") for series, look in here.items()}
            draw_points(axes, marked, "gamma", SPEEDUP, dots, categories=gammas, hollow=True)

    def title(members: pd.DataFrame) -> str:
        """Return the target, and its prompts where there is more than one panel of it."""
        first = members.iloc[0]
        of_target = cells[cells["target_label"] == first["target_label"]]
        label = short(first["target_label"])
        several = of_target["panel"].nunique() > 1
        return f"{label}\n{short(first['prompts'])}" if several else label

    campaigns = [
        handle(replace(pairs[heading, drafts[0]], marker="", line="-"), short(heading))
        for heading in headings
    ]
    of_drafts = [
        handle(replace(pairs[headings[0], draft], colour=REFERENCE_COLOUR), f"draft {short(draft)}")
        for draft in drafts
    ]
    groups, handles = cells.groupby("panel"), [*campaigns, *of_drafts]
    return draw_panels(groups, draw_panel, title, _BY_GAMMA, handles, _gain_from_zero)


def plot_types(analysis: Analysis) -> Figure | None:
    """Show speedup against the bytes a pass reads, or None if no network has several files.

    A panel for each draft, a line for each network and γ.
    """
    cells = analysis.types
    if cells.empty:
        return None
    divisor, unit = (1e9, "GB") if cells["pass_bytes"].max() >= 1e9 else (1e6, "MB")
    cells["read"] = cells["pass_bytes"] / divisor
    cells["series"] = cells["label"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        draw_series(axes, members, "read", SPEEDUP, looks)
        size_axis(axes, cells["read"])

    handles = [
        handle(looks[row["series"]], f"{short(row['label'])}, γ = {row['gamma']}")
        for row in records(cells.drop_duplicates("series"))
    ]
    groups = cells.groupby("draft_rank")
    words = (f"read by a pass over one token ({unit})", SPEEDUP.words)
    return draw_panels(groups, draw_panel, _draft, words, handles, _gain_from_zero)


def plot_concurrency(analysis: Analysis) -> Figure | None:
    """Show throughput over that without a draft by requests at once, or None without loads.

    A panel for each target and suite, a line for each setting.
    """
    cells = analysis.concurrency
    if cells.empty:
        return None
    looks = looks_of(cells["setting"].unique())

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        of_target = members.assign(series=members["setting"])
        draw_series(axes, of_target, "concurrency", _THROUGHPUT, looks)
        axes.set_xticks(sorted(cells["concurrency"].unique()))

    handles = [handle(look, short(setting)) for setting, look in looks.items()]
    groups = cells.groupby("series", sort=False)
    words = ("requests at once", _THROUGHPUT.words)
    return draw_panels(groups, draw_panel, target_title, words, handles, _gain_from_zero)


def plot_positions(analysis: Analysis) -> Figure | None:
    """Show conditional and joint acceptance by position, or None if no rounds were logged.

    A row for each target. A line for each method and the file that it loads: its longest drafts, in
    the first setting that has them.
    """
    cells, line = analysis.positions, ["series", "drafter"]
    cells = cells[cells["gamma"] == cells.groupby(line)["gamma"].transform("max")]
    cells = cells[cells["draft_rank"] == cells.groupby(line)["draft_rank"].transform("min")]
    if cells.empty:
        return None
    ordered = cells.sort_values("draft_rank", kind="stable")
    looks = looks_of(ordered["drafter"].drop_duplicates())

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        lines = list(members.groupby("drafter", sort=False))
        for (drafter, own), dodge in dodged(lines, min(2, _SPREAD_PT / len(lines))):
            draw(axes, own, "position", _ACCEPTED, looks[drafter], dodge)
        axes.set_xlim(0.5, cells["position"].max() + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))

    def title(members: pd.DataFrame) -> str:
        return f"{target_title(members)}, {members['kind'].iloc[0]}"

    def finish(axes: Axes) -> None:
        axes.set_ylim(-0.03, 1.05)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))

    groups = [
        (kind, members.assign(kind=kind, accepted=members[kind]))
        for _, members in cells.groupby("series", sort=False)
        for kind in ("conditional", "joint")
    ]
    words = ("position in the draft (tokens)", _ACCEPTED.words)
    handles = [handle(look, short(drafter)) for drafter, look in looks.items()]
    return draw_panels(groups, draw_panel, title, words, handles, finish, most_columns=2)


def _by_gamma(
    analysis: Analysis, plotted: PlottedColumn, finish: Callable[[Axes], None]
) -> Figure | None:
    cells = cells_by_draft(analysis)
    if cells.empty:
        return None
    looks = target_looks(cells)

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        here = _looks_in(members, looks)
        draw_points(axes, members, "gamma", plotted, here, categories=cells["gamma"])

    groups, handles = cells.groupby("draft_rank"), series_handles(cells, looks)
    return draw_panels(groups, draw_panel, _draft, (GAMMA_WORDS, plotted.words), handles, finish)


def _by_parameters(analysis: Analysis, column: str, words: str) -> Figure | None:
    """Plot each draft at its middle γ; None where targets hardly differ in size."""
    cells = cells_by_draft(analysis)
    if cells["target"].nunique() < 2 or cells[column].max() < 1.1 * cells[column].min():
        return None
    divisor, unit = (1e9, "billions") if cells[column].max() >= 1e9 else (1e6, "millions")
    cells[column] = cells[column] / divisor
    looks = {series: replace(look, line="none") for series, look in target_looks(cells).items()}

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        members = members[members["gamma"] == _middle(members["gamma"])]
        # Joined, they show on which side of them an MoE is.
        dense = members[members["family"] == "dense"].sort_values(column)
        axes.plot(dense[column], dense["speedup"], color="#C9A98F", linewidth=0.8, zorder=1)
        for _, beside in members.groupby(column):
            points = beside.groupby("series", sort=False)
            for (series, point), dodge in dodged(points, _POINT_DODGE_PT):
                draw(axes, point, column, SPEEDUP, looks[series], dodge)
        size_axis(axes, cells[column])

    def title(members: pd.DataFrame) -> str:
        return f"{_draft(members)}, γ = {_middle(members['gamma'])}"

    groups, handles = cells.groupby("draft_rank"), series_handles(cells, looks)
    of_axes = (f"{words} of the target ({unit})", SPEEDUP.words)
    return draw_panels(groups, draw_panel, title, of_axes, handles, mark_no_change)


def _gain_from_zero(axes: Axes) -> None:
    start_at_zero(axes)
    mark_no_change(axes)


def _show_percent(axes: Axes) -> None:
    start_at_zero(axes)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _looks_in(members: pd.DataFrame, looks: Mapping[str, Look]) -> dict[str, Look]:
    return {series: looks[series] for series in members["series"].unique()}


def _draft(members: pd.DataFrame) -> str:
    return f"draft {short(members['draft_label'].iloc[0])}"


def _middle(values: Iterable[int]) -> int:
    distinct = sorted(set(values))
    return distinct[(len(distinct) - 1) // 2]
