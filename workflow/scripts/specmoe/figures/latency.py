"""The figure of the time between tokens: its distribution, a panel for each target."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from specmoe.analysis.registry import Analysis
from specmoe.config.block import NO_DRAFT
from specmoe.figures.panels import REFERENCE_LINE, add_legend, panel_for_each
from specmoe.figures.style import looks_of, short

_ALONE = "without a draft"
_MOST_LINES = 8  # of a panel; the table has every setting


def plot_token_gaps(analysis: Analysis) -> Figure | None:
    """Show the distribution of the time between tokens, or None if no answer was streamed.

    A line for each setting, and for the target alone.
    """
    curves = analysis.token_gaps
    if curves.empty:
        return None
    alone = curves["draft"] == NO_DRAFT
    words = curves["draft_label"].map(lambda label: short(str(label)))
    words += ", γ = " + curves["gamma"].astype(str)
    curves["setting"] = words.where(~alone, _ALONE)
    settings = curves.loc[~alone, "setting"].drop_duplicates()[:_MOST_LINES]
    looks = looks_of(settings)
    figure, panels = panel_for_each(curves.groupby("series", sort=False))
    lines: dict[str, Line2D] = {}
    for axes, members in panels:
        for name, curve in members.groupby("setting", sort=False):
            setting = str(name)
            if setting == _ALONE:
                style = REFERENCE_LINE
            elif setting in looks:
                style = {"color": looks[setting].colour, "linestyle": looks[setting].line}
            else:
                continue
            steps = axes.step(curve["ms"], curve["share"], where="post", label=setting, **style)
            lines.setdefault(setting, steps[0])
        axes.set_title(short(members["label"].iloc[0]))
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.supxlabel("time between tokens (ms)")
    figure.supylabel("share of tokens")
    add_legend(figure, list(lines.values()))
    return figure
