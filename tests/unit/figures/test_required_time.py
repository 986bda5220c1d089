"""The figure of the draft-time bound shows every row, and reads without colour."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from specmoe.audit.bounds import required_time
from specmoe.figures import style
from specmoe.figures.required_time import NOTHING_DRAFTED, plot_required_time

from ..audit.test_checks import SETTINGS, SIZES, campaign, stranger


@pytest.fixture
def frames():
    frame = required_time(campaign(stranger()), SIZES, SETTINGS)
    moe = frame.assign(family=["moe", "moe", "dense", "dense"])
    return {"published": moe, "demo": moe.assign(decode_ms=moe["decode_ms"] / 5)}


def dots(figure):
    """Return the dots of each series, as pairs of seconds."""
    [axes] = figure.axes
    return [line.get_xydata() for line in axes.get_lines() if line.get_marker() not in ("None", "")]


def test_every_row_of_every_campaign_is_a_dot(frames):
    shown = dots(plot_required_time(frames))
    assert [len(series) for series in shown] == [2, 2, 2, 2]
    assert shown[0].tolist() == [[1.068, 1.428]] * 2


def test_the_diagonal_is_where_a_run_takes_what_its_passes_need(frames):
    [axes] = plot_required_time(frames).axes
    diagonal = axes.get_lines()[0].get_xydata()
    assert np.array_equal(diagonal[:, 0], diagonal[:, 1])
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim() == axes.get_ylim() == pytest.approx(tuple(diagonal[:, 0]))


def test_nothing_drawn_lies_outside_the_axes(frames):
    figure = plot_required_time(frames)
    low, high = figure.axes[0].get_xlim()
    for series in dots(figure):
        assert ((low < series) & (series < high)).all()


def test_the_legend_names_campaign_family_and_number_of_rows(frames):
    [legend] = plot_required_time(frames).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "published, MoE (2)",
        "published, dense (2)",
        "demo, MoE (2)",
        "demo, dense (2)",
    ]


def test_series_differ_by_marker_and_families_in_greyscale(frames):
    def luminance(line):
        red, green, blue = (int(to_hex(line.get_color())[at : at + 2], 16) for at in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    lines = plot_required_time(frames).axes[0].get_lines()[1:]
    assert len({line.get_marker() for line in lines}) == 4
    assert abs(luminance(lines[0]) - luminance(lines[1])) > 40


def test_the_figure_fits_the_page(frames):
    figure = plot_required_time({"a campaign of a long name " * 3: frames["demo"]} | frames)
    with style.applied():
        FigureCanvasAgg(figure).draw()
    assert figure.get_figwidth() <= style.WIDTH_IN
    left, bottom, right, top = figure.get_tightbbox().extents
    assert min(left, bottom) > -0.02
    assert right < figure.get_figwidth() + 0.02
    assert top < figure.get_figheight() + 0.02


def test_a_campaign_without_drafts_says_so(frames):
    for empty in ({}, {"demo": frames["demo"].iloc[:0]}):
        figure = plot_required_time(empty)
        assert [text.get_text() for text in figure.texts] == [NOTHING_DRAFTED]


def test_a_dollar_sign_in_a_campaigns_name_is_a_dollar_sign(frames):
    [legend] = plot_required_time({"$x^$": frames["demo"]}).legends
    assert legend.get_texts()[0].get_text() == "$x^$, MoE (2)"
    assert not legend.get_texts()[0].get_parse_math()
