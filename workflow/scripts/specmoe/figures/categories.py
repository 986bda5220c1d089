"""The figure of categories of prompts: speedup by category, a panel for each target."""

from matplotlib.figure import Figure

from specmoe.analysis.registry import Analysis
from specmoe.figures.speedup_rows import MOST_MARKS, draw_rows
from specmoe.figures.style import short


def plot_categories(analysis: Analysis) -> Figure | None:
    """Show the speedup by category of prompt, or None if no prompt has one.

    A line for each category; the marks of the settings stand below each other. Where these would
    be too many, each target keeps its fastest ones.
    """
    cells = analysis.categories
    if cells.empty:
        return None
    cells["setting"] = cells["draft_label"].map(short) + ", γ = " + cells["gamma"].astype(str)
    shown = max(MOST_MARKS // cells["category_label"].nunique(), 1)
    means = cells.groupby(["series", "setting"])["speedup"].mean()
    fastest = means.groupby("series").rank(ascending=False, method="first") <= shown
    kept = fastest.reindex(cells.set_index(["series", "setting"]).index).to_numpy(bool)
    return draw_rows(cells[kept], "category_label", "setting", "category_label", str)
