"""The figure of the draft-time bound shows every row, and reads without colour."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from specmoe.audit.bounds import required_time
from specmoe.audit.evidence import gather_evidence
from specmoe.figures import style
from specmoe.figures.figures import FIGURES

from ..audit.test_checks import SETTINGS, SIZES, campaign, stranger
from ..paper_analyses import full
from .test_figures import assert_fits, legend, luminance


@pytest.fixture
def frames():
    frame = required_time(gather_evidence(campaign(stranger()), SIZES, None, SETTINGS))
    moe = frame.assign(family=["moe", "moe", "dense", "dense"])
    return {"published": moe, "synthetic": moe.assign(decode_ms=moe["decode_ms"] / 5)}


def plot_required_time(frames):
    """Return the figure of campaigns, each with its rows of `bounds.required_time`."""
    times = pd.concat(frame.assign(campaign=campaign) for campaign, frame in frames.items())
    return FIGURES["required_time"](replace(full(), required_time=times))


def dots(figure):
    """Return the dots of each series, as pairs of seconds."""
    [axes] = figure.axes
    return [line.get_xydata() for line in axes.get_lines() if line.get_marker() not in ("None", "")]


def test_every_row_of_every_campaign_is_a_dot(frames):
    shown = dots(plot_required_time(frames))
    assert [len(series) for series in shown] == [2, 2, 2, 2]
    assert shown[0].tolist() == [[1.068, 1.602]] * 2


def test_the_diagonal_is_where_a_run_takes_what_its_passes_need(frames):
    [axes] = plot_required_time(frames).axes
    diagonal = axes.get_lines()[0].get_xydata()
    assert np.array_equal(diagonal[:, 0], diagonal[:, 1])
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim() == axes.get_ylim() == pytest.approx(tuple(diagonal[:, 0]))


def test_the_legend_names_campaign_family_and_number_of_rows(frames):
    assert legend(plot_required_time(frames)) == [
        "published, MoE (2)",
        "published, dense (2)",
        "synthetic, MoE (2)",
        "synthetic, dense (2)",
    ]


def test_series_differ_by_marker_and_families_in_greyscale(frames):
    lines = plot_required_time(frames).axes[0].get_lines()[1:]
    assert len({line.get_marker() for line in lines}) == 4
    assert abs(luminance(lines[0].get_color()) - luminance(lines[1].get_color())) > 40


@pytest.mark.parametrize("name", ["a campaign of a long name " * 3, "$x^$"])
def test_any_name_of_a_campaign_is_shown_as_text_and_fits(frames, name):
    figure = plot_required_time({name: frames["synthetic"]} | frames)
    assert legend(figure)[0] == f"{style.short(name)}, MoE (2)"
    assert not figure.legends[0].get_texts()[0].get_parse_math()
    assert_fits(figure)
