"""The figures of times and costs show the numbers of the cost model and of the audit's bound."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from specmoe.audit.bounds import required_time
from specmoe.audit.evidence import Evidence
from specmoe.figures.figures import draw

from ..audit.test_checks import SETTINGS, SIZES, campaign, stranger
from ..paper_analyses import costed, costed_with_timed_passes, full
from ..planted_twins import with_twins
from ..simulated_rounds import pass_cost, verify_cost
from .test_figures import legend, lines, luminance, values

ANALYSIS = costed()


def test_a_line_for_every_target_and_the_experts_of_the_moe_beside_them():
    figure = draw("verification_cost", ANALYSIS)
    steps, experts = figure.axes
    moe, dense = lines(steps)
    assert moe == pytest.approx([pass_cost(width) for width in (1, 2, 3, 5, 9)], rel=0.05)
    assert dense == pytest.approx([pass_cost(width) for width in (1, 2, 3, 5, 9, 17, 33)], rel=0.05)
    (visited,) = lines(experts)
    assert visited[:2] == pytest.approx([8, 256 * (1 - (1 - 8 / 256) ** 2)])
    assert legend(figure) == ["MoE Q4", "Dense 4B", "its bytes / bandwidth"]


def test_rounds_and_even_routing_are_hollow_beside_passes_timed_by_themselves():
    made = costed_with_timed_passes()
    moe = made.verification[made.verification["target"] == "moe_q4"]
    figure = draw("verification_cost", replace(made, verification=moe))
    steps, experts = figure.axes
    passes, rounds = lines(steps)
    assert passes == pytest.approx([verify_cost(width) for width in moe["width"]], rel=0.05)
    assert rounds == pytest.approx([pass_cost(width) for width in (2, 3, 5, 9)], rel=0.05)
    seen, even = lines(experts)
    assert seen[0] == even[0] == 8
    assert seen[-1] < even[-1]
    assert legend(figure) == [
        "MoE Q4",
        "its bytes / bandwidth",
        "a whole round",
        "if routing is even",
    ]


def test_targets_without_experts_have_no_panel_for_them():
    passes = ANALYSIS.verification
    dense = replace(ANALYSIS, verification=passes[passes["target"] == "dense_4b"])
    assert len(draw("verification_cost", dense).axes) == 1


def test_every_cell_is_a_dot_in_each_panel_and_hollow_beyond_the_measured_widths():
    panels = draw("predicted_speedup", ANALYSIS).axes
    for axes in panels:
        dots = [line for line in axes.get_lines() if line.get_marker() in "o^"]
        assert sum(len(line.get_xdata()) for line in dots) == 3
        hollow = [line for line in dots if line.get_markerfacecolor() == "white"]
        assert [len(line.get_xdata()) for line in hollow] == [1]
        low, high = axes.get_xlim()
        assert all(low < value < high for line in dots for value in line.get_ydata())


def test_break_even_has_a_panel_per_target_with_the_measured_rates():
    moe, dense = draw("break_even", ANALYSIS).axes
    assert [axes.get_title() for axes in (moe, dense)] == ["MoE Q4", "Dense 4B"]
    cells = ANALYSIS.predictions
    measured = cells.loc[cells["target"] == "moe_q4", "acceptance_rate"].tolist()
    assert lines(moe)[-1] == pytest.approx(measured)


def test_thin_lines_show_the_time_to_read_the_weights_where_bandwidth_is_known():
    dense = ANALYSIS.verification.set_index("target").loc["dense_4b"]
    step_ms = (dense["ms"] / dense["steps"]).iloc[0]

    def thin(analysis):
        [axes, *_] = draw("verification_cost", analysis).axes
        return [values(line) for line in axes.get_lines() if line.get_linewidth() == 0.8]

    bound = [4.4e9 / 400e9 * 1000 / step_ms] * len(dense)
    assert any(line == pytest.approx(bound) for line in thin(ANALYSIS))
    unknown = replace(ANALYSIS, verification=ANALYSIS.verification.assign(bound_ms=float("nan")))
    assert len(thin(ANALYSIS)) == len(thin(unknown)) + 2


def test_twins_share_panels_of_passes_experts_and_speedups():
    figure = draw("twins", with_twins())
    steps, experts, speedups = figure.axes
    assert [y for line in lines(steps) for y in line] == pytest.approx([1, 1.5, 1, 3])
    assert lines(experts)[0] == [1, 3]
    assert [y for line in lines(speedups) for y in line] == pytest.approx([1.2, 1.2, 0.9, 0.9])
    assert legend(figure) == ["Dense 4B", "MoE Q4", "if routing is even"]


@pytest.fixture
def frames():
    """Two families of two campaigns, with two rows each."""
    frame = required_time(Evidence(campaign(stranger()), SIZES, None, SETTINGS))
    moe = frame.assign(family=["moe", "moe", "dense", "dense"])
    return {"published": moe, "synthetic": moe.assign(decode_ms=moe["decode_ms"] / 5)}


def plot_required_time(frames):
    """Return the figure of campaigns, each with its rows of `bounds.required_time`."""
    times = pd.concat(frame.assign(campaign=campaign) for campaign, frame in frames.items())
    return draw("required_time", replace(full(), required_time=times))


def test_runs_stand_beside_the_diagonal_where_they_take_what_their_passes_need(frames):
    figure = plot_required_time(frames)
    [axes] = figure.axes
    bound, *series = axes.get_lines()
    diagonal = bound.get_xydata()
    assert np.array_equal(diagonal[:, 0], diagonal[:, 1])
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim() == axes.get_ylim() == pytest.approx(tuple(diagonal[:, 0]))
    assert [len(one.get_xydata()) for one in series] == [2, 2, 2, 2]
    assert series[0].get_xydata().tolist() == [[1.068, 1.602]] * 2
    assert len({one.get_marker() for one in series}) == 4
    assert abs(luminance(series[0].get_color()) - luminance(series[1].get_color())) > 40
    assert legend(figure) == [
        f"{name}, {of} (2)" for name in ("published", "synthetic") for of in ("MoE", "dense")
    ]
