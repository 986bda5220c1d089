"""The look of the figures: one palette by meaning, sizes for the printed page.

A target keeps its colour, marker and line in every figure.
Colour gives the family (MoE blue, dense orange), marker and line the model, so the figures read in
greyscale and without colour vision. Colours follow P. Tol's high-contrast scheme.
"""

from collections.abc import Iterable
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd
import seaborn as sns

WIDTH_IN = 6.3
"""Width of the article's text block, in inches; figures are included unscaled."""

PANEL_HEIGHT_IN = 2.1
MAX_HEIGHT_IN = 8.5
"""Leaves room for a caption on the page."""

LABEL_LENGTH = 34

# The colours and the markers of each family's targets; all colours have a contrast of 3 on white.
_FAMILIES = {
    "moe": (("#004488", "#5A96CF", "#002B5C", "#6E93B8"), ("o", "s", "D", "p", "h")),
    "dense": (("#C4570A", "#BE8015", "#8A3B00", "#B58A48"), ("^", "v", "<", ">", "X")),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h", "d", "8")
_LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_DRAFT_COLOURS = ("#882255", "#2F9484", "#A08D1C", "#5C8FC2", "#8C8C2B")

REFERENCE_COLOUR = "#666666"

_RC: Any = {
    **sns.axes_style("ticks", rc={"grid.color": "#E4E4E4", "axes.grid": True}),
    "figure.dpi": 200,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same glyphs everywhere
    **dict.fromkeys(["font.size", "axes.titlesize", "axes.labelsize", "figure.labelsize"], 8),
    **dict.fromkeys(["xtick.labelsize", "ytick.labelsize", "legend.fontsize"], 7),
    **dict.fromkeys(["axes.linewidth", "xtick.major.width", "ytick.major.width"], 0.6),
    **dict.fromkeys(["grid.linewidth", "hatch.linewidth"], 0.5),
    **dict.fromkeys(["xtick.major.size", "ytick.major.size"], 3),
    **dict.fromkeys(["legend.frameon", "axes.spines.top", "axes.spines.right"], False),
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
    "pdf.fonttype": 42,  # TrueType: text in the PDF can be searched
    "svg.hashsalt": "specmoe",
}


class Look(NamedTuple):
    """Tells one target from the others."""

    colour: str
    marker: str
    line: Any


applied = partial(mpl.rc_context, _RC)
"""Draw and save in the style of the paper; restore the style after."""


def target_looks(settings: pd.DataFrame) -> dict[str, Look]:
    """Return the look of each series of settings (columns series and family), in their order."""
    unused = {family: map(Look, *map(cycle, (*of, _LINES))) for family, of in _FAMILIES.items()}
    named = settings[["series", "family"]].drop_duplicates().itertuples(index=False)
    return {series: next(unused[family]) for series, family in named}


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return a look for each name, in their order."""
    looks = map(Look, cycle(_DRAFT_COLOURS), cycle(MARKERS), cycle(_LINES))
    return dict(zip(names, looks, strict=False))


def short(label: str) -> str:
    """Return a label that fits a legend: a long label loses its middle."""
    label, half = " ".join(label.split()), (LABEL_LENGTH - 1) // 2
    return label if len(label) <= LABEL_LENGTH else f"{label[:half]}…{label[-half:]}"
