"""How figures look: one palette by meaning, sizes for the page they go to.

A target keeps its colour, marker and line in every figure; so does a draft its colour and hatch.
Colour says the family (MoE blue, dense orange), marker and line say which model, so that nothing
is lost in greyscale or to a colour-blind reader. Colours follow P. Tol's high-contrast scheme.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns

WIDTH_IN = 6.3
"""Width of the article's text block, in inches; figures are included unscaled."""

PANEL_HEIGHT_IN = 2.3
MAX_HEIGHT_IN = 8.5
"""What leaves room for a caption on the page."""

LABEL_LENGTH = 34

_FAMILY_COLOURS = {
    "moe": ("#004488", "#5A96CF", "#002B5C", "#8FB8E0"),
    "dense": ("#C4570A", "#EBA13C", "#8A3B00", "#F2C078"),
}
_FAMILY_MARKERS = {"moe": ("o", "s", "D", "p", "h"), "dense": ("^", "v", "<", ">", "X")}
_WAY_MARKERS = ("o", "s", "^", "D", "v")
_CAMPAIGN_COLOURS = ("#882255", "#44AA99", "#332288", "#999933", "#CC6677")
_LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_DRAFT_COLOURS = ("#882255", "#44AA99", "#DDCC77", "#6699CC", "#999933")
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\")

BASELINE_COLOUR = "#FFFFFF"
REFERENCE_COLOUR = "#666666"

_RC: Any = {
    **sns.axes_style("ticks", rc={"grid.color": "#E4E4E4", "axes.grid": True}),
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same glyphs everywhere
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "figure.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    "hatch.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
    "pdf.fonttype": 42,  # TrueType: text in the PDF can be searched
    "svg.hashsalt": "specmoe",
}


@dataclass(frozen=True)
class Look:
    """What tells one target from the others."""

    colour: str
    marker: str
    line: Any


@dataclass(frozen=True)
class Fill:
    """What tells the bars of one draft from those of the others."""

    colour: str
    hatch: str


@contextmanager
def applied() -> Iterator[None]:
    """Draw and save in the style of the paper; nothing outside is changed."""
    with mpl.rc_context(_RC):
        yield


def target_looks(cells: pd.DataFrame) -> dict[str, Look]:
    """Return the look of each series of cells (columns series and family), in their order."""
    looks = {}
    used = {family: count() for family in _FAMILY_COLOURS}
    for series, family in cells[["series", "family"]].drop_duplicates().itertuples(index=False):
        index = next(used[family])
        looks[series] = Look(
            colour=_turn(_FAMILY_COLOURS[family], index),
            marker=_turn(_FAMILY_MARKERS[family], index),
            line=_turn(_LINES, index),
        )
    return looks


def way_looks(ways: Iterable[str]) -> dict[str, Look]:
    """Return the look of each way of measuring, in their order."""
    return {
        way: Look(_turn(_DRAFT_COLOURS, index), _turn(_WAY_MARKERS, index), _turn(_LINES, index))
        for index, way in enumerate(ways)
    }


def compared_looks(campaigns: Iterable[str], drafts: Iterable[str]) -> dict[tuple[str, str], Look]:
    """Return the look of each campaign and draft: a colour a campaign, marker and line a draft."""
    listed = list(drafts)
    return {
        (campaign, draft): Look(
            _turn(_CAMPAIGN_COLOURS, place), _turn(_WAY_MARKERS, index), _turn(_LINES, index)
        )
        for place, campaign in enumerate(campaigns)
        for index, draft in enumerate(listed)
    }


def draft_fills(drafts: Iterable[str]) -> dict[str, Fill]:
    """Return the fill of each draft, in their order."""
    return {
        draft: Fill(_turn(_DRAFT_COLOURS, index), _turn(_HATCHES, index))
        for index, draft in enumerate(drafts)
    }


def shade(colour: str, step: int, steps: int) -> Any:
    """Return a tint of the colour, the full one for the last of `steps`."""
    return sns.light_palette(colour, n_colors=steps + 2)[step + 2]


def short(label: str) -> str:
    """Return a label that fits a legend: its middle left out if it is long."""
    label = " ".join(label.split())
    if len(label) <= LABEL_LENGTH:
        return label
    half = (LABEL_LENGTH - 1) // 2
    return f"{label[:half]}…{label[-half:]}"


def legend_columns(labels: Iterable[str], width_in: float) -> int:
    """Return how many legend entries fit side by side on a figure of that width."""
    longest = max((len(label) for label in labels), default=1)
    # An entry takes its letters and about eight more for its sample and the gap; at 7 points
    # there are 17 letters to the inch.
    return max(1, int(17 * width_in) // (longest + 8))


def _turn(values: tuple[Any, ...], index: int) -> Any:
    return values[index % len(values)]
