"""The figure of suites that sample: acceptance rate and speedup against temperature."""

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FormatStrFormatter, PercentFormatter

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import temperature_cells
from specmoe.figures.panels import (
    Quantity,
    add_legend,
    dodged,
    draw,
    handle,
    make_panels,
    mark_no_change,
    start_at_zero,
)
from specmoe.figures.style import applied, short, target_looks

_ACCEPTANCE = Quantity("acceptance_rate", "acceptance rate")
_SPEEDUP = Quantity("speedup", "speedup over no draft", "speedup_low", "speedup_high")


@applied()
def plot_temperatures(analysis: Analysis) -> Figure | None:
    """Show what temperature does, or None if nothing was sampled.

    A line for each target, draft and γ.
    """
    cells = temperature_cells(analysis)
    if cells.empty:
        return None
    cells["series"] = cells["series"] + " " + cells["draft"] + " " + cells["gamma"].astype(str)
    looks = target_looks(cells)
    figure, (left, right) = make_panels(2, sharey=False)
    handles = []
    for (series, members), dodge in dodged(cells.groupby("series", sort=False)):
        first = members.iloc[0]
        for axes, quantity in [(left, _ACCEPTANCE), (right, _SPEEDUP)]:
            draw(axes, members, "temperature", quantity, looks[series], dodge)
        words = f"draft {short(first['draft_label'])}, γ = {first['gamma']}"
        handles.append(handle(looks[series], f"{short(first['label'])}, {words}"))
    for axes, quantity in [(left, _ACCEPTANCE), (right, _SPEEDUP)]:
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(cells["temperature"]))))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.set_ylabel(quantity.words)
    mark_no_change(right)
    start_at_zero(left)
    start_at_zero(right)
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.supxlabel("temperature")
    add_legend(figure, handles)
    return figure
