"""The figures of paper and page, each from the analysis alone; equal ones give the same bytes."""

from collections.abc import Callable, Collection
from pathlib import Path

from fontTools.subset import Options
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from specmoe.analysis.registry import Analysis
from specmoe.figures import costs, series, speedup_rows
from specmoe.figures.style import applied

PLOTS: dict[str, Callable[[Analysis], Figure | None]] = {
    name.removeprefix("plot_"): plot
    for module in (series, speedup_rows, costs)
    for name, plot in vars(module).items()
    if name.startswith("plot_")
}
"""What draws each figure: it gives None where the campaign measured nothing that it shows."""

# On the page, the first of these that there is explains the answer; then come the others.
_WHY = ("protocols", "methods", "speedup_by_gamma", "break_even", "levels")
_OTHERS = ("upcycled_pairs", "state", "required_time")


@applied()
def figure_of(name: str, analysis: Analysis) -> Figure | None:
    """Return a figure in the paper's style, with everything in its place; None without content."""
    if figure := PLOTS[name](analysis):
        # As an engine of the figure it would do so for every file.
        ConstrainedLayoutEngine().execute(figure)
    return figure


@applied()
def save_figures(analysis: Analysis, folder: Path, names: Collection[str] = PLOTS) -> list[str]:
    """Save the figures that show anything as `<name>.pdf`, the page's as SVG too; return names."""
    folder.mkdir(parents=True, exist_ok=True)
    # matplotlib shapes text itself; reading a font's rules for it took half the time of a PDF.
    Options._drop_tables_default = [*{*Options._drop_tables_default, "GDEF", "GPOS", "GSUB"}]
    drawn = {name: figure for name in names if (figure := figure_of(name, analysis))}
    for name, figure in drawn.items():
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    why = [name for name in _WHY if name in drawn][:1]
    for name in [*why, *(name for name in _OTHERS if name in drawn)]:
        drawn[name].savefig(folder / f"{name}.svg", metadata={"Date": None})
    return list(drawn)
