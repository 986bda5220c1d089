"""The paper's figures for the page, inside it; figures that show nothing are left out.

They are SVG. A figure of many points is large as SVG, so where all would make the page heavy, the
largest are PNG.
"""

from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from typing import NamedTuple

from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures.figures import FIGURES, drawn
from specmoe.figures.style import applied

# Their letters are sized for print; on a screen these are as large as the text around them.
PIXELS_AN_INCH = 120
MOST_BYTES = 2_000_000
"""Of all figures together, as SVG; those that go over it are PNG, from the largest on."""
_SHARPER = 1.5  # a PNG's pixels for one of the page's


class Picture(NamedTuple):
    """A figure as a data URL, and its size in pixels."""

    address: str
    width: int
    height: int


def page_figures(analysis: Analysis) -> dict[str, Picture]:
    """Return the figures by name; equal analyses give equal ones."""
    figures = {name: draw(analysis) for name, draw in FIGURES.items()}
    shown = {name: figure for name, figure in figures.items() if drawn(figure)}
    pictures = {name: _svg(figure) for name, figure in shown.items()}
    for name in _too_large({name: len(one.address) for name, one in pictures.items()}):
        pictures[name] = _png(shown[name])
    return pictures


def _too_large(sizes: Mapping[str, int]) -> list[str]:
    """Return the largest of the figures, as many as must go for the others to fit."""
    left, named = sum(sizes.values()), []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if left <= MOST_BYTES:
            break
        left -= sizes[name]
        named.append(name)
    return named


def _svg(figure: Figure) -> Picture:
    saved = BytesIO()
    with applied():
        figure.savefig(saved, format="svg", metadata={"Date": None, "Creator": None})
    return _picture(figure, "image/svg+xml", saved)


def _png(figure: Figure) -> Picture:
    saved = BytesIO()
    with applied():
        figure.savefig(
            saved, format="png", dpi=_SHARPER * PIXELS_AN_INCH, metadata={"Software": None}
        )
    return _picture(figure, "image/png", saved)


def _picture(figure: Figure, kind: str, saved: BytesIO) -> Picture:
    address = f"data:{kind};base64,{b64encode(saved.getvalue()).decode()}"
    width, height = (round(PIXELS_AN_INCH * inches) for inches in figure.get_size_inches())
    return Picture(address, width, height)
