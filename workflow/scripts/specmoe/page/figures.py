"""The paper's figures for the page, as SVG inside it; figures that show nothing are left out."""

from base64 import b64encode
from io import BytesIO
from typing import NamedTuple

from matplotlib.figure import Figure

from specmoe.analysis.build import Analysis
from specmoe.figures.figures import FIGURES, drawn
from specmoe.figures.style import applied

# Their letters are sized for print; on a screen these are as large as the text around them.
PIXELS_AN_INCH = 120


class Picture(NamedTuple):
    """A figure as a data URL, and its size in pixels."""

    address: str
    width: int
    height: int


def page_figures(analysis: Analysis) -> dict[str, Picture]:
    """Return the figures by name; equal analyses give equal ones."""
    figures = {name: draw(analysis) for name, draw in FIGURES.items()}
    return {name: _picture(figure) for name, figure in figures.items() if drawn(figure)}


def _picture(figure: Figure) -> Picture:
    drawn = BytesIO()
    with applied():
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    address = f"data:image/svg+xml;base64,{b64encode(drawn.getvalue()).decode()}"
    width, height = (round(PIXELS_AN_INCH * inches) for inches in figure.get_size_inches())
    return Picture(address, width, height)
