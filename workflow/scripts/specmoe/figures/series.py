"""Figures with a panel for each draft model, target or suite, and a line for each series in it."""

from itertools import product

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, PercentFormatter

from specmoe.analysis.registry import Analysis
from specmoe.analysis.views import settings_by_draft, settings_by_protocol
from specmoe.figures import parts
from specmoe.figures.speedup_rows import rows_of_levels
from specmoe.figures.style import Look, looks_of, short, target_looks

# The labels of the columns that panels of a row show.
_OF_DRAFTS = {"speedup": parts.SPEEDUP_LABEL, "acceptance_rate": parts.ACCEPTANCE_LABEL}
_OF_PROTOCOLS = {
    "acceptance_rate": parts.ACCEPTANCE_LABEL,
    "speedup": "reported speedup",
    "decode_failures": "failed decodes a run",
}
_OTHER_LABEL = "speed of the other baselines (tok/s)"
_GREY = Look("#444444", "o", "none")
_LINE = Line2D([], [], color=_GREY.colour, linewidth=0.8, label="the line through all blocks")
# The axes are linear below these, so that they can show zero.
_LEAST_ACCEPTANCE, _LEAST_FAILURES = 1e-3, 1.0

_MOST_LINES = 24
_MOST_BETWEEN_TWO = 6  # lines between two levels, that can be told apart
_LOGARITHMIC = 16  # largest level over the smallest


def plot_speedup_by_gamma(analysis: Analysis) -> Figure | None:
    """Show speedup and acceptance rate against draft length, or None where all have one.

    A row for each draft model with several, a line for each target.
    """
    settings = settings_by_draft(analysis)
    settings = settings[settings.groupby("draft")["gamma"].transform("nunique") > 1]
    if settings.empty:
        return None
    looks = target_looks(settings)
    drafts = [members for _, members in settings.groupby("draft_rank")]
    figure, panels = parts.make_panels(2 * len(drafts), most_columns=2, share="col")
    for axes, (members, column) in zip(panels, product(drafts, _OF_DRAFTS), strict=True):
        parts.draw_series(axes, members, "gamma", column, looks)
        parts.powers_of_two(axes, settings["gamma"])
        axes.set(title=_draft(members), ylabel=_OF_DRAFTS[column])
    for gain, accepted in zip(panels[::2], panels[1::2], strict=True):
        parts.mark_no_change(gain)
        parts.start_at_zero(accepted)
        accepted.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.supxlabel(parts.GAMMA_LABEL)
    return parts.with_legend(figure, parts.series_handles(settings, looks))


def plot_gamma_curves(analysis: Analysis) -> Figure | None:
    """Show the speedup predicted of every γ, with the measured ones as marks.

    A panel for each draft model, a line for each target; None without draft scores.
    """
    settings = analysis.gamma_curves
    looks = target_looks(settings)

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        for series, rows in members.groupby("series", sort=False):
            look = looks[str(series)]
            gammas, ends = rows["gamma"], rows[["predicted", "predicted_low", "predicted_high"]]
            curve, low, high = ends.to_numpy(float).T
            axes.plot(gammas, curve, color=look.colour, linestyle=look.line, linewidth=1)
            axes.fill_between(gammas, low, high, color=look.colour, alpha=0.15, linewidth=0)
        known = members[members["speedup"].notna()]
        parts.draw_series(axes, known, "gamma", "speedup", looks, line="none")
        parts.whole_numbers(axes)
        parts.mark_no_change(axes)

    groups, handles = settings.groupby("draft_rank"), parts.series_handles(settings, looks)
    labels = (parts.GAMMA_LABEL, parts.SPEEDUP_LABEL)
    return parts.draw_panels(groups, draw_panel, labels, handles, title=_draft)


def plot_levels(analysis: Analysis) -> Figure | None:
    """Show speedup against the level of what a suite varies, or None if no suite has two levels.

    A panel for each suite and target, a line for each draft model and γ. Numbers are on their
    scale. Many settings at two levels have a line each instead. Returns None with more
    lines than can be told apart, too: the table has them all.
    """
    settings = analysis.levels
    settings = settings[settings.groupby("series")["level"].transform("nunique") > 1]
    levels = settings[["factor_label", "level"]].drop_duplicates()
    if len(levels) == 2 and settings["setting"].nunique() > _MOST_BETWEEN_TWO:
        return rows_of_levels(settings)
    if settings["setting"].nunique() > _MOST_LINES:
        return None
    ordered = settings.sort_values(["draft_rank", "gamma"], kind="stable")
    looks = looks_of(ordered["setting"].unique())

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        parts.draw_series(axes, members, "level_rank", "speedup", looks, by="setting")
        ticks = members.drop_duplicates("level_rank").sort_values("level_rank")
        least, most = ticks["level_rank"].agg(["min", "max"])
        if least >= 1 and most > _LOGARITHMIC * least:
            axes.set_xscale("log", base=2)
        axes.set_xticks(ticks["level_rank"], ticks["level"])
        if pd.to_numeric(ticks["level"], errors="coerce").isna().any():  # labels may be long
            axes.tick_params("x", labelrotation=20)
        axes.minorticks_off()
        axes.set_xlabel(members["factor_label"].iloc[0])
        parts.mark_no_change(axes)
        parts.start_at_zero(axes)

    groups, labels = settings.groupby("series", sort=False), ("", parts.SPEEDUP_LABEL)
    handles = [parts.handle(look, short(setting)) for setting, look in looks.items()]
    return parts.draw_panels(groups, draw_panel, labels, handles, share=False)


def plot_protocols(analysis: Analysis) -> Figure | None:
    """Show the results of each way of measuring the same settings, or None with a single way.

    A row of panels for each target and draft, a line for each way, over draft length.
    """
    settings = settings_by_protocol(analysis)
    if settings.empty:
        return None
    rows = [members for _, members in settings.groupby(["target_rank", "draft_rank"])]
    looks = looks_of(settings["measured_by"].unique())
    columns = len(_OF_PROTOCOLS)
    figure, panels = parts.make_panels(
        columns * len(rows), columns, around_in=0.7, row_in=1.7, share="col"
    )
    most = max(float(settings["decode_failures"].max()), _LEAST_FAILURES)
    for axes, (members, column) in zip(panels, product(rows, _OF_PROTOCOLS), strict=True):
        parts.draw_series(axes, members, "gamma", column, looks, by="measured_by")
        axes.set_title(_OF_PROTOCOLS[column])
        if column == "acceptance_rate":
            axes.set_ylabel(f"{short(members['target_label'].iloc[0])}\n{_draft(members)}")
            axes.set_yscale("symlog", linthresh=_LEAST_ACCEPTANCE)
            axes.set(ylim=(0, 1.5), yticks=[0, 1e-3, 1e-2, 1e-1, 1])
            axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        elif column == "decode_failures":
            axes.set_yscale("symlog", linthresh=_LEAST_FAILURES)
            axes.set_ylim(-0.4, 3 * most)  # room for the markers of both ends
            axes.yaxis.set_major_formatter("{x:g}")
        parts.powers_of_two(axes, settings["gamma"])
    for speedup in panels[1::columns]:
        parts.start_at_zero(speedup)
        parts.mark_no_change(speedup)
    figure.supxlabel(parts.GAMMA_LABEL)
    return parts.with_legend(figure, [parts.handle(look, way) for way, look in looks.items()])


def plot_state(analysis: Analysis) -> Figure | None:
    """Show the speedup by the speed of the other baselines, or None where none is known.

    A panel for each target, with a mark for each quarter of its blocks, and the line through all.
    """
    quarters = analysis.state
    looks = target_looks(quarters.assign(series=quarters["target"]))
    other = "other_tokens_per_second"

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        parts.draw_series(axes, members, other, "speedup", looks, by="target", line="none")
        colour = looks[str(members["target"].iloc[0])].colour
        axes.plot(members[other], members["expected"], color=colour, linewidth=0.8)
        parts.mark_no_change(axes)

    groups, labels = quarters.groupby("target_rank"), (_OTHER_LABEL, parts.SPEEDUP_LABEL)
    handles = [parts.handle(_GREY, "a quarter of the blocks"), _LINE]
    return parts.draw_panels(groups, draw_panel, labels, handles)


def _draft(members: pd.DataFrame) -> str:
    return short(members["draft_label"].iloc[0])
