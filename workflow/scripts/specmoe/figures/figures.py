"""The paper's figures, each from the analysis alone; `save` writes the same bytes every time."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures import (
    by_gamma,
    by_parameters,
    categories,
    concurrency,
    costs,
    latency,
    machines,
    methods,
    positions,
    prompt_lengths,
    protocols,
    required_time,
    side_by_side,
    temperatures,
    throughput,
    twins,
    types,
)
from specmoe.figures.style import WIDTH_IN, applied

PNG_DPI = 200
NOT_MEASURED = "not measured in this campaign"

_MODULES = (
    *(by_parameters, by_gamma, throughput, prompt_lengths, required_time, temperatures, types),
    *(methods, positions, costs, protocols, side_by_side, categories, concurrency, latency),
    *(machines, twins),
)


def save(figure: Figure, stem: Path) -> None:
    """Write `<stem>.pdf` and `<stem>.png`; equal figures give equal bytes."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with applied():
        figure.savefig(f"{stem}.pdf", metadata={"CreationDate": None})
        figure.savefig(f"{stem}.png", dpi=PNG_DPI)


def drawn(figure: Figure) -> bool:
    """Return whether a figure shows anything: a figure of what was not measured has no axes."""
    return bool(figure.axes)


def _in_style(plot: Callable[[Analysis], Figure | None]) -> Callable[[Analysis], Figure]:
    """Return a function that draws in the paper's style, or says that nothing was measured."""

    def draw(analysis: Analysis) -> Figure:
        with applied():
            if figure := plot(analysis):
                return figure
            empty = Figure(figsize=(WIDTH_IN / 2, 1))
            empty.text(0.5, 0.5, NOT_MEASURED, ha="center", va="center", style="italic")
            return empty

    return draw


FIGURES: dict[str, Callable[[Analysis], Figure]] = {
    name.removeprefix("plot_"): _in_style(plot)
    for module in _MODULES
    for name, plot in vars(module).items()
    if name.startswith("plot_")
}
"""Every figure by its name: `<name>` is drawn by `plot_<name>` of one of the modules."""
