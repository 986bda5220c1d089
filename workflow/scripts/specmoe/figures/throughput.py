"""The figure of rates: bars over draft length, a panel for each target, suite and way."""

import textwrap
from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from specmoe.analysis.filters import rates_by_draft
from specmoe.analysis.registry import Analysis
from specmoe.config.block import MEASURED_BY, NO_DRAFT
from specmoe.figures.panels import (
    GAMMA_WORDS,
    INTERVAL,
    PlottedColumn,
    draw_panels,
    interval_rows,
    target_title,
)
from specmoe.figures.style import BASELINE_FILL, Fill, draft_fills, short

MAX_BARS = 28
"""How many bars fit side by side on the page."""

MAX_COLUMNS = 4
LEAST_CATEGORIES = 4
"""Bars of a panel with fewer categories are as narrow as if it had so many."""

ALONE = "–"
"""Stands for γ where there is no draft."""

_RATE = PlottedColumn("tokens_per_second", "tokens per second", "low", "high")


def plot_throughput(analysis: Analysis) -> Figure | None:
    """Show the rate of each target without a draft, and with each draft and γ; ± sd.

    A panel's bars are over the same prompts. A campaign without drafts shows its baselines alone.
    None if it has none.
    """
    cells = rates_by_draft(analysis)
    shown = cells
    if cells.empty:
        baselines = analysis.baselines
        shown = baselines.assign(gamma=ALONE, draft=NO_DRAFT, series=baselines["target"])
    if shown.empty:
        return None
    groups = _with_deviation(shown).groupby(["series", *MEASURED_BY], sort=False)
    widest = int(groups.size().max()) + 1
    columns = min(MAX_COLUMNS, max(1, MAX_BARS // widest))
    drafts = cells.sort_values("draft_rank").drop_duplicates("draft")
    fills = draft_fills(drafts["draft"])

    def draw_panel(axes: Axes, members: pd.DataFrame) -> None:
        gammas = [] if cells.empty else sorted(members["gamma"].unique())
        categories = [ALONE, *map(str, gammas)]
        alone = members if cells.empty else _alone(members)
        _draw_bars(axes, alone.assign(draft=NO_DRAFT), {NO_DRAFT: BASELINE_FILL}, categories)
        here = {draft: fill for draft, fill in fills.items() if draft in set(members["draft"])}
        _draw_bars(axes, members.assign(gamma=members["gamma"].astype(str)), here, categories)

    def title(members: pd.DataFrame) -> str:
        return textwrap.fill(target_title(members), 60 // columns)

    labels = {NO_DRAFT: "without draft"}
    labels |= dict(zip(drafts["draft"], "draft " + drafts["draft_label"].map(short), strict=True))
    handles = [
        Patch(facecolor=fill.colour, edgecolor="black", hatch=fill.hatch, label=labels[draft])
        for draft, fill in {NO_DRAFT: BASELINE_FILL, **fills}.items()
    ]
    words = (GAMMA_WORDS, _RATE.words)
    return draw_panels(groups, draw_panel, title, words, handles, most_columns=columns)


def _alone(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row for the target of cells alone, over their prompts."""
    rates = {key: cells[f"alone_{key}"] for key in ("tokens_per_second", "tokens_per_second_sd")}
    return _with_deviation(cells.assign(gamma=ALONE, **rates).head(1))


def _with_deviation(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the ends of one standard deviation around their rate."""
    rate, deviation = rows["tokens_per_second"], rows["tokens_per_second_sd"]
    return rows.assign(low=rate - deviation, high=rate + deviation)


def _draw_bars(
    axes: Axes, rows: pd.DataFrame, fills: Mapping[str, Fill], categories: Sequence[str]
) -> None:
    """Draw a bar for each row over its γ, those of several drafts side by side."""
    if not fills or rows.empty:
        return
    before = len(axes.containers)
    sns.barplot(
        interval_rows(rows, _RATE),
        x="gamma",
        y=_RATE.column,
        order=categories,
        hue="draft",
        hue_order=list(fills),
        palette=[fill.colour for fill in fills.values()],
        saturation=1,
        capsize=0.2,
        err_kws={"color": "black", "linewidth": 0.8},
        edgecolor="black",
        linewidth=0.5,
        legend=False,
        ax=axes,
        **INTERVAL,
    )
    for bars, fill in zip(axes.containers[before:], fills.values(), strict=True):
        for bar in bars:
            bar.set_hatch(fill.hatch)
    axes.set(xlabel="", ylabel="")
    missing = max(0, LEAST_CATEGORIES - len(categories))
    axes.set_xlim(-0.6 - missing / 2, len(categories) - 0.4 + missing / 2)
