"""The figure of ways of drafting: speedup by method, a panel for each target."""

from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures.speedup_rows import draw_rows


def plot_methods(analysis: Analysis) -> Figure | None:
    """Show the speedup of each way of drafting, or None if no target has several.

    A line for each setting of what drafts; the marks of its draft lengths stand below each other.
    """
    cells = analysis.methods
    if cells.empty:
        return None
    return draw_rows(cells, "draft_label", "gamma", "draft_rank", lambda gamma: f"γ = {gamma}")
