"""The paper's figures, each from the analysis alone; `save` writes the same bytes every time."""

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from specmoe.analysis.registry import Analysis
from specmoe.figures import costs, series, speedup_rows, sweeps, twins
from specmoe.figures.style import applied

_MODULES = (series, sweeps, speedup_rows, costs, twins)


def _laid_out(plot: Callable[[Analysis], Figure | None]) -> Callable[[Analysis], Figure | None]:
    """Return a function that draws in the paper's style, and gives everything its place once."""

    @applied()
    def draw(analysis: Analysis) -> Figure | None:
        if figure := plot(analysis):
            # As an engine of the figure it would do so for every file.
            ConstrainedLayoutEngine().execute(figure)
        return figure

    return draw


FIGURES: dict[str, Callable[[Analysis], Figure | None]] = {
    name.removeprefix("plot_"): _laid_out(plot)
    for module in _MODULES
    for name, plot in vars(module).items()
    if name.startswith("plot_")
}
"""Every figure by its name: `<name>` is drawn by `plot_<name>` of one of the modules.

It is None where the campaign measured nothing that it shows.
"""


def figures_of(analysis: Analysis) -> dict[str, Figure]:
    """Return the figures that show anything, by name."""
    drawn = {name: draw(analysis) for name, draw in FIGURES.items()}
    return {name: figure for name, figure in drawn.items() if figure}


@applied()
def save(figures: Mapping[str, Figure], folder: Path) -> None:
    """Write `<name>.pdf`, for paper, and `<name>.svg`; equal figures give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
