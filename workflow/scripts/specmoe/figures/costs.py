"""Figures of times and costs: of forward passes, experts, upcycled pairs, rounds and runs."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

from specmoe.analysis.registry import Analysis
from specmoe.analysis.views import FAMILY_WORDS
from specmoe.figures import parts
from specmoe.figures.style import Look, short, target_looks
from specmoe.models.reported import passes_elsewhere

N_TOKENS_LABEL = "tokens per forward pass"

_LABELS = {
    "ms": "time of a pass (ms)",
    "experts": "distinct experts a layer",
    "layers": "experts over uniform routing",
    "speedup": parts.SPEEDUP_LABEL,
}
_GREY = Look("#444444", "o", ":")
_THIN: Any = {"linewidth": 0.8}
_SHADE: Any = {"alpha": 0.15, "linewidth": 6}
_DASHED: Any = {"linestyle": parts.REFERENCE_LINE["linestyle"]}
_NEVER: Any = {"color": "#B00020", "marker": "x", "linestyle": "none"}


def plot_verification_cost(analysis: Analysis) -> Figure | None:
    """Show the time of a pass against its tokens, or None if no pass was measured.

    Hollow marks show whole rounds, dashed lines the server's time for the tokens one by one, thin
    lines the time to read the pass's weights at the machine's bandwidth, where that is known.
    Behind an MoE's line lies the range that others report of other MoEs, by the time of a single
    token, and beside are the experts that an MoE visits, hollow those of even routing.
    """
    passes = analysis.verification
    if passes.empty:
        return None
    # All drafts of a target share its passes; their rounds differ.
    passes = passes.assign(series=passes["target"], label=passes["target_label"])
    rounds = passes[passes["round_ms"].notna()]
    passes = passes.drop_duplicates(["target", "n_tokens"])
    looks = target_looks(passes)
    timed = analysis.pass_times.assign(series=analysis.pass_times["model"])
    timed = timed[timed["series"].isin(looks)].drop_duplicates(["series", "n_tokens"])
    routed = timed[timed["experts"].notna()]
    figure, panels = parts.make_panels(1 if routed.empty else 2, share=False)
    parts.draw_series(panels[0], passes, "n_tokens", "pass_ms", looks)
    for _, of_draft in rounds.groupby("draft", sort=False):
        parts.draw_series(panels[0], of_draft, "n_tokens", "round_ms", looks, hollow=True)
    bounded = timed[timed["bound_ms"].notna()]
    for series, rows in bounded.groupby("series"):
        panels[0].plot(rows["n_tokens"], rows["bound_ms"], color=looks[str(series)].colour, **_THIN)
    for series, rows in passes.groupby("series"):
        counts = np.arange(1, rows["n_tokens"].max() + 1)
        one_by_one = counts * rows["token_ms"].iloc[0]
        panels[0].plot(counts, one_by_one, color=looks[str(series)].colour, **_THIN | _DASHED)
    elsewhere = passes_elsewhere()
    singles = passes[(passes["family"] == "moe") & (passes["n_tokens"] == 1)]
    for _, single in singles.iterrows():
        low, high = single["pass_ms"] * np.array([*elsewhere.values()]).T
        colour = looks[single["series"]].colour
        panels[0].vlines([*elsewhere], low, high, color=colour, **_SHADE)
    panels[0].set_yscale("log", base=2)
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].set(xlabel=N_TOKENS_LABEL, ylabel=_LABELS["ms"])
    parts.whole_numbers(panels[0])
    for axes in panels[1:]:
        _draw_panel(axes, routed, looks, "experts")
    thin: Any = _THIN | {"color": _GREY.colour}
    beside = [Line2D([], [], label="its tokens one by one", **thin | _DASHED)]
    beside += [] if bounded.empty else [Line2D([], [], label="its weights / bandwidth", **thin)]
    beside += [] if rounds.empty else [parts.handle(_GREY, "a whole round", hollow=True)]
    beside += [] if routed.empty else [parts.handle(_GREY, "uniform routing", hollow=True)]
    reported = Line2D([], [], label="reported of other MoEs", color=_GREY.colour, **_SHADE)
    beside += [] if singles.empty else [reported]
    return parts.with_legend(figure, [*parts.series_handles(passes, looks), *beside])


def plot_experts(analysis: Analysis) -> Figure | None:
    """Show the distinct experts of each layer over those of even routing.

    A line for each MoE, of its widest pass; None where no layers were counted.
    """
    counted = analysis.pass_times.dropna(subset="layers").sort_values("n_tokens", kind="stable")
    passes = counted.assign(series=counted["model"]).drop_duplicates("series", keep="last")
    if passes.empty:
        return None
    passes = passes.sort_values("rank").explode("layers")
    passes = passes.assign(layer=passes.groupby("series").cumcount() + 1)
    looks, (figure, [axes]) = target_looks(passes), parts.make_panels(1)
    _draw_panel(axes, passes, looks, "layers")
    return parts.with_legend(figure, parts.series_handles(passes, looks))


def plot_upcycled_pairs(analysis: Analysis) -> Figure | None:
    """Show passes, experts and speedups of MoEs beside those of their dense counterparts.

    A row for each dense model, that of most MoEs first. Left the time of a pass and in the middle
    the distinct experts it visits against its tokens, hollow if routing is even; right the speedup
    against γ, of the draft model with most. What was not measured of any is left out; None without
    all.
    """
    passes = analysis.pass_times.assign(series=analysis.pass_times["model"])
    passes = passes[passes["dense"].notna()]
    routed = passes[passes["experts"].notna()]
    rows_of = {"ms": passes, "experts": routed, "speedup": _by_gamma(analysis.upcycled_pairs)}
    shown = {column: rows for column, rows in rows_of.items() if not rows.empty}
    if not shown:
        return None
    families = pd.concat(shown.values()).drop_duplicates("series")
    looks, names = target_looks(families), families["dense_label"].value_counts().index
    figure, panels = parts.make_panels(len(names) * len(shown), len(shown), share=False)
    for axes, (name, column) in zip(panels, product(names, shown), strict=True):
        rows = shown[column]
        if len(members := rows[rows["dense_label"] == name]):
            _draw_panel(axes, members, looks, column)
        axes.set_title(f"{short(name)} and MoEs")
    handles = parts.series_handles(families, looks)
    handles += [] if routed.empty else [parts.handle(_GREY, "uniform routing", hollow=True)]
    return parts.with_legend(figure, handles)


def _by_gamma(settings: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups by the draft model with most γ, of MoEs and their dense counterparts."""
    settings = settings[settings["forced_acceptance"].isna() & settings["gamma"].notna()]
    most = settings.groupby("draft")["gamma"].nunique().nlargest(1).index
    settings = settings[settings["draft"].isin(most)]
    dense = settings.drop_duplicates(["dense", "suite", "gamma"])
    dense = dense.assign(
        **{f"speedup{end}": dense[f"dense_speedup{end}"] for end in ("", "_low", "_high")},
        series=dense["dense"],
        label=dense["dense_label"],
        family="dense",
    )
    routed = settings.assign(series=settings["target"], label=settings["target_label"])
    return pd.concat([dense, routed]).sort_values("gamma", kind="stable")


def _draw_panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, Look], column: str) -> None:
    """Draw a column against the tokens of a pass, or its layers, or speedups against γ."""
    x, label = ("layer", "layer") if column == "layers" else ("n_tokens", N_TOKENS_LABEL)
    if column == "speedup":
        x, label = "gamma", f"γ of {short(rows['draft_label'].iloc[0])}"
        axes.set_xlim(0, rows["gamma"].max() + 1)
    parts.draw_series(axes, rows, x, column, looks)
    if column == "experts":
        even = rows.drop_duplicates([x, "experts_even"])  # the same for as many experts
        parts.draw_series(axes, even, x, "experts_even", looks, hollow=True)
    axes.set(xlabel=label, ylabel=_LABELS[column])
    parts.whole_numbers(axes)
    if column in ("speedup", "layers"):
        parts.mark_no_change(axes)
    if column != "speedup":
        parts.start_at_zero(axes)


def plot_break_even(analysis: Analysis) -> Figure | None:
    """Show the acceptance rate that pays, and the rate that was reached, against γ.

    A panel for each target and draft. None if no pass was measured.
    """
    settings = analysis.break_even
    looks = target_looks(settings)

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        line = members.drop_duplicates("gamma")
        # Where possibly no rate pays, the interval is open above.
        top = line["break_even_high"].fillna(1.0).where(line["break_even_low"].notna())
        line = line.assign(break_even_high=top)
        parts.draw_series(axes, line, "gamma", "break_even", looks, line="-")
        never = line[line["break_even"].isna()]
        axes.plot(never["gamma"], [1.0] * len(never), **_NEVER)
        # A suite that forces acceptance has several rates at each γ.
        curves, measured = ["suite", "forced_acceptance"], members.dropna(subset="suite")
        for _, of_curve in measured.groupby(curves, sort=False, dropna=False):
            how = {"marker": "s"} if of_curve["forced_acceptance"].notna().any() else {}
            parts.draw_series(axes, of_curve, "gamma", "acceptance_rate", looks, hollow=True, **how)
        parts.powers_of_two(axes, settings["gamma"])
        axes.set_ylim(-0.03, 1.06)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))

    handles = [parts.handle(_GREY._replace(line="-"), "acceptance at which the speedup is 1")]
    measured = settings[settings["suite"].notna()]
    if measured["forced_acceptance"].isna().any():
        handles.append(parts.handle(_GREY, "accepted", hollow=True))
    if measured["forced_acceptance"].notna().any():
        handles.append(parts.handle(_GREY._replace(marker="s"), "accepted, forced", hollow=True))
    if settings["break_even"].isna().any():
        handles.append(Line2D([], [], label="never pays", **_NEVER))
    labels = (parts.GAMMA_LABEL, parts.ACCEPTANCE_LABEL)
    return parts.draw_panels(settings.groupby("series", sort=False), draw_panel, labels, handles)


def plot_required_time(analysis: Analysis) -> Figure | None:
    """Show every run with speculation of each campaign as a dot, or None if there are none.

    No run can be below the diagonal: its passes, one by one, need more time than it took.
    """
    # Runs in which nothing was drafted need no time: a logarithmic axis has no place for them.
    times = analysis.required_time
    times = times[times["required_ms"] > 0]
    if times.empty:
        return None
    seconds = times[["required_ms", "decode_ms"]].astype(float) / 1000
    series = times["campaign"] + ", " + times["family"].map(FAMILY_WORDS)
    figure, [axes] = parts.make_panels(1, row_in=2.8)
    diagonal = (seconds.min().min() / 1.3, seconds.max().max() * 1.3)
    axes.set(xscale="log", yscale="log", xlim=diagonal, ylim=diagonal)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")
    axes.plot(diagonal, diagonal, **parts.REFERENCE_LINE)
    axes.fill_between(diagonal, diagonal[0], diagonal, color="#EFEFEF", linewidth=0, zorder=0)
    beside: Any = {"xycoords": "axes fraction", "va": "bottom"} | parts.REFERENCE_TEXT
    axes.annotate("faster than its own passes", (0.98, 0.03), **beside)
    handles = []
    for name, look in target_looks(times.assign(series=series)).items():
        here = seconds[series == name]
        dots = look._replace(line="none")
        small = parts.line_style(dots) | {"markersize": 4, "markeredgewidth": 0.3}
        axes.plot(here["required_ms"], here["decode_ms"], **small, zorder=2)
        handles.append(parts.handle(dots, f"{short(name)} ({len(here)})"))
    axes.set(xlabel="time that its rounds need (s)", ylabel="time that its row says (s)")
    return parts.with_legend(figure, handles)
