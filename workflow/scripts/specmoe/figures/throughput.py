"""The bars of the throughput figure: which there are, how they break into rows, how they look."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from specmoe.figures.style import BASELINE_COLOUR, draft_fills, shade, short

MAX_BARS = 28


@dataclass(frozen=True)
class Bar:
    """A bar of `throughput`: rate and deviation in tok/s, the tick under it, its look."""

    rate: float
    deviation: float
    tick: str
    colour: Any
    hatch: str


@dataclass(frozen=True)
class BarGroup:
    """The bars of one target."""

    label: str
    bars: list[Bar]


def group_bars(cells: pd.DataFrame, baselines: pd.DataFrame) -> list[BarGroup]:
    """Return the bars of every target measured with a draft, or else of every baseline."""
    if cells.empty:
        rows = baselines.to_dict("records")
        return [BarGroup(row["label"], [_baseline_bar(row)]) for row in rows]
    fills = draft_fills(cells.sort_values("draft_rank")["draft"].unique())
    gammas = sorted(cells["gamma"].unique())
    plain = {row["target"]: row for row in baselines.to_dict("records")}
    groups = []
    for _, members in cells.groupby("series", sort=False):
        first = members.iloc[0]
        bars = [_baseline_bar(plain[first["target"]])] if first["target"] in plain else []
        for row in members.to_dict("records"):
            fill, step = fills[row["draft"]], gammas.index(row["gamma"])
            colour = shade(fill.colour, step, len(gammas))
            rate, deviation = row["tokens_per_second"], row["tokens_per_second_sd"]
            bars.append(Bar(rate, deviation, str(row["gamma"]), colour, fill.hatch))
        groups.append(BarGroup(first["label"], bars))
    return groups


def _baseline_bar(row: dict[Any, Any]) -> Bar:
    rate, deviation = row["tokens_per_second"], row["tokens_per_second_sd"]
    return Bar(rate, deviation, "–", BASELINE_COLOUR, "")


def break_rows(groups: Iterable[BarGroup]) -> list[list[BarGroup]]:
    """Return the groups in rows of at most MAX_BARS bars, gaps between groups included."""
    rows: list[list[BarGroup]] = []
    room = 0
    for group in groups:
        if not rows or len(group.bars) > room:
            rows.append([])
            room = MAX_BARS
        rows[-1].append(group)
        room -= len(group.bars) + 1
    return rows


def draw_bars(axes: Axes, groups: Sequence[BarGroup]) -> None:
    """Draw groups side by side, γ under each bar and the target under its group."""
    ticks: dict[float, str] = {}
    start = 0
    for group in groups:
        for x, bar in enumerate(group.bars, start):
            ticks[x] = bar.tick
            axes.bar(
                x,
                bar.rate,
                width=0.9,
                yerr=None if pd.isna(bar.deviation) else bar.deviation,
                error_kw={"elinewidth": 0.8, "capsize": 1.5},
                color=bar.colour,
                hatch=bar.hatch,
                edgecolor="black",
                linewidth=0.5,
                zorder=2,
            )
        _name_group(axes, start, group)
        start += len(group.bars) + 1
    axes.set_xlim(-0.8, max(start - 1.2, 8))
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    below: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "fontsize": 7,
    }
    axes.annotate("γ", xy=(0, 0), xytext=(-10, -10), **below)


def _name_group(axes: Axes, start: int, group: BarGroup) -> None:
    width = len(group.bars)
    lines = textwrap.wrap(short(group.label), max(8, 3 * width + 2))
    axes.annotate(
        "\n".join(lines),
        xy=(start + (width - 1) / 2, 0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, -16),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=7,
        annotation_clip=False,
    )
