"""The figures of paper and page, each from the analysis alone; equal ones give the same bytes."""

from collections.abc import Callable, Collection
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from specmoe.analysis.registry import Analysis
from specmoe.figures import costs, series, speedup_rows, sweeps
from specmoe.figures.style import NARROW_IN, WIDTH_IN, applied

PLOTS: dict[str, Callable[[Analysis], Figure | None]] = {
    name.removeprefix("plot_"): plot
    for module in (series, sweeps, speedup_rows, costs)
    for name, plot in vars(module).items()
    if name.startswith("plot_")
}
"""What draws each figure: it gives None where the campaign measured nothing that it shows."""


def draw(name: str, analysis: Analysis, width: float = WIDTH_IN) -> Figure | None:
    """Return a figure in the paper's style, with everything in its place; None without content."""
    with applied(width):
        if figure := PLOTS[name](analysis):
            # As an engine of the figure it would do so for every file.
            ConstrainedLayoutEngine().execute(figure)
        return figure


@applied()
def save(analysis: Analysis, folder: Path, names: Collection[str] = PLOTS) -> list[str]:
    """Save the figures that show anything; return their names.

    `<name>.pdf` is the paper's, `<name>.svg` the page's and `narrow/<name>.svg` that for phones.
    """
    (folder / "narrow").mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in names:
        if figure := draw(name, analysis):
            figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            if narrow := draw(name, analysis, NARROW_IN):
                narrow.savefig(folder / f"narrow/{name}.svg", metadata={"Date": None})
            drawn.append(name)
    return drawn
