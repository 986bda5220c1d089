"""The paper's figures for the page, inside it; figures that show nothing are left out.

They are SVG. A figure of many points is large as SVG, so where all would make the page heavy, the
largest are PNG.
"""

from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from typing import TypedDict

from matplotlib.figure import Figure

from specmoe.figures.style import applied

# Their letters are sized for print; on a screen these are as large as the text around them.
PIXELS_AN_INCH = 120
MOST_BYTES = 2_000_000
"""Of all figures together, as SVG; those that go over it are PNG, from the largest on."""


class Picture(TypedDict):
    """A figure as a data URL, and its size in pixels."""

    address: str
    width: int
    height: int


@applied()
def page_figures(figures: Mapping[str, Figure]) -> dict[str, Picture]:
    """Return the pictures of figures by name; equal figures give equal ones."""
    pictures = {name: _picture(figure, "svg+xml", "Date") for name, figure in figures.items()}
    for name in _too_large({name: len(one["address"]) for name, one in pictures.items()}):
        pictures[name] = _picture(figures[name], "png", "Software")
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


def _picture(figure: Figure, kind: str, varying: str) -> Picture:
    """Return a picture of a kind, without the metadata that differ each time."""
    saved = BytesIO()
    figure.savefig(saved, format=kind.split("+")[0], metadata={varying: None})
    address = f"data:image/{kind};base64,{b64encode(saved.getvalue()).decode()}"
    width, height = (round(PIXELS_AN_INCH * inches) for inches in figure.get_size_inches())
    return Picture(address=address, width=width, height=height)
