"""The figures show the analysis's numbers, fit the page, and are reproducible."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy import isfinite

from specmoe.audit.bounds import required_time
from specmoe.audit.evidence import Evidence
from specmoe.figures import style
from specmoe.figures.figures import PLOTS, figure_of, save_figures
from specmoe.tables.exhibits import read_figures

from .. import paper_analyses as made
from ..audit.test_checks import SETTINGS, SIZES, campaign, unrelated
from ..paper_analyses import full
from ..simulated_rounds import STEP_MS, pass_cost, verify_cost

# Campaigns for the figures that show nothing of `full`.
SHOWING = {
    "protocols": made.several_ways,
    "methods": made.several_methods,
    "categories": made.with_categories,
    "levels": made.with_loads,
    "upcycled_pairs": made.with_upcycled_pairs,
    **dict.fromkeys(["verification_cost", "experts", "break_even", "gamma_curves"], made.costed),
    "state": made.with_state,
    "best_settings": lambda: made.advised(full()),
}
LABEL = f"_$x^$ \\frac{{ %s {{}}\n{'a' * 300}"


def lines(axes):
    """Return the lines of an axes with markers, each as its list of y values, without gaps."""
    marked = [line.get_ydata() for line in axes.get_lines() if line.get_marker() in "os^vD"]
    return [*filter(None, ([y for y in line if isfinite(y)] for line in marked))]


def intervals(axes):
    """Return the ends of each interval of an axes, line by line: (low, high)."""
    bars = [bar for line in axes.containers for bar in line.lines[2]]
    return [tuple(ends[:, 1]) for bar in bars for ends in bar.get_segments()]


def legend(figure):
    """Return the words of a figure's legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def assert_fits(figure):
    """Assert that nothing of a figure is outside of it, once its layout is computed."""
    with style.applied():
        FigureCanvasAgg(figure).draw()
    left, bottom, right, top = figure.get_tightbbox().extents
    assert min(left, bottom) > -0.02
    assert right < figure.get_figwidth() + 0.02
    assert top < figure.get_figheight() + 0.02


def test_every_figure_is_specified_and_every_specified_one_drawn():
    assert set(PLOTS) == set(read_figures())


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_fits_the_page_whatever_names_are_and_nothing_overlaps(name):
    analysis = SHOWING.get(name, full)()
    assert_fits(figure_of(name, made.relabelled(analysis, "moe_q4", LABEL)))
    figure = figure_of(name, analysis)
    assert_fits(figure)
    assert figure.get_figwidth() <= style.WIDTH_IN
    boxes = [figure.legends[0].get_window_extent()]
    boxes += [label.get_window_extent() for label in figure.texts if label.get_text()]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    pairs = [(one, other) for index, one in enumerate(boxes) for other in boxes[:index]]
    assert not any(one.padded(-1).overlaps(other) for one, other in pairs)


def test_the_same_analysis_gives_the_same_bytes(tmp_path):
    names = ["speedup_by_gamma", "required_time"]
    for attempt in ("first", "second"):
        assert save_figures(full(), tmp_path / attempt, names) == names
    files = sorted((tmp_path / "first").iterdir())
    assert len(files) == 4
    for file in files:
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes()


def test_a_campaign_without_drafts_has_no_figure(tmp_path):
    assert save_figures(made.without_drafts(), tmp_path) == []


NUMBERS = yaml.safe_load(Path(__file__).with_name("numbers.yaml").read_text())


@pytest.mark.parametrize("name", NUMBERS)
def test_figures_show_the_numbers_of_the_analysis(name):
    expected = NUMBERS[name]
    figure = figure_of(name, getattr(made, expected["of"])())
    for axes, panel in zip(figure.axes, expected["panels"], strict=True):
        assert lines(axes) == [pytest.approx(line, rel=1e-4) for line in panel]
    assert legend(figure) == expected["legend"]
    assert [axes.get_title() for axes in figure.axes] == expected["titles"]


def test_intervals_are_those_of_the_analysis():
    analysis = full()
    settings = analysis.settings.assign(
        speedup_low=0.1, speedup_high=analysis.settings["speedup"] + 1e-17
    )
    for axes in figure_of("speedup_by_gamma", replace(analysis, settings=settings)).axes[::2]:
        shown = [value for line in lines(axes) for value in line]
        assert intervals(axes) == [(pytest.approx(0.1), pytest.approx(value)) for value in shown]


def marks(axes):
    """Return the marks of an axes with their intervals left out: (speedup, place from above)."""
    marked = [line for line in axes.get_lines() if line.get_marker() in "os^D"]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in marked]


def test_ways_of_drafting_stand_below_each_other_in_every_panel():
    figure = figure_of("methods", made.several_methods())
    moe, dense = figure.axes
    assert [axes.get_title() for axes in (moe, dense)] == ["MoE Q4", "Dense 4B"]
    assert [label.get_text() for label in moe.get_yticklabels()] == [
        *("Draft 0.8B", "MTP, p ≥ 0.5", "prompt lookup, n = 3", "n-gram pool, n = 2")
    ]
    places = moe.get_yticks()
    small, large, mtp, ngrams, pool = marks(moe)
    assert [small[0], large[0]] == pytest.approx([1.2, 1.4])
    assert (small[1] + large[1]) / 2 == pytest.approx(places[0])
    assert mtp == (pytest.approx(1.5), places[1])
    assert ngrams == (pytest.approx(1.1), places[2])
    assert pool == (pytest.approx(1.6), places[3])
    assert marks(dense) == [(pytest.approx(0.9), small[1]), (pytest.approx(0.98), places[2])]
    assert legend(figure) == ["γ = 2", "γ = 4", "γ = 8"]


def test_a_level_that_is_a_number_is_on_its_scale_and_others_stand_in_order():
    lengths = figure_of("levels", full()).axes[0]
    assert [tick.get_text() for tick in lengths.get_xticklabels()] == ["64", "1024"]
    assert lengths.get_xlabel() == "Prompt length (tokens)"
    named = replace(full(), levels=full().levels.replace({"level": {"64": "none", "1024": "-x 2"}}))
    assert figure_of("levels", named).axes[0].get_xticks().tolist() == [0, 1]


def test_the_best_setting_of_each_target_has_the_colour_of_its_answer():
    for answer, word in {
        "leave off at these γ": "answer: leave off",
        "little to gain": "answer: little to gain",
        "undecided": "decides no answer",
        "switch on": "answer: switch on",
    }.items():
        figure = figure_of("best_settings", made.advised(full(), answer=answer))
        assert legend(figure) == [word]
    [axes] = figure.axes
    assert marks(axes) == [(1.4, 0)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MoE Q4, code"]


def test_no_two_settings_of_a_category_have_the_same_marker():
    one = made.with_categories().categories
    many = [
        one.assign(series=f"t{target}", label=f"T{target}", gamma=gamma, speedup=gamma / 8)
        for target in range(3)
        for gamma in range(1, 9)
    ]
    drafts = [rows.assign(draft_label=name) for rows in many for name in ("One", "Two")]
    figure = figure_of("categories", replace(made.with_categories(), categories=pd.concat(drafts)))
    assert len(legend(figure)) <= len(style.MARKERS)
    samples = [line.get_marker() for line in figure.legends[0].get_lines()]
    assert len(samples) == len(set(samples))


def test_rounds_and_even_routing_are_hollow_beside_passes_timed_by_themselves():
    costs = made.costed().verification
    moe = costs[costs["target"] == "moe_q4"]
    figure = figure_of("verification_cost", replace(made.costed(), verification=moe))
    times, experts = figure.axes
    passes, rounds = lines(times)
    assert passes == pytest.approx([STEP_MS * verify_cost(n) for n in moe["n_tokens"]], rel=0.05)
    assert rounds == pytest.approx([STEP_MS * pass_cost(n) for n in (2, 3, 5, 9)], rel=0.05)
    [one_by_one] = (line for line in times.get_lines() if line.get_linestyle() == "--")
    assert one_by_one.get_ydata() == pytest.approx(STEP_MS * one_by_one.get_xdata(), rel=1e-3)
    seen, even = lines(experts)
    assert seen[0] == even[0] == 8
    assert seen[-1] < even[-1]
    assert legend(figure) == [
        "MoE Q4",
        "its tokens one by one",
        "its weights / bandwidth",
        "a whole round",
        "uniform routing",
        "reported of other MoEs",
    ]


def test_a_pair_of_which_passes_alone_were_measured_has_no_speedups():
    analysis, names = made.with_upcycled_pairs(), {"moe_q4": "draft_2b", "dense_4b": "draft_0.8b"}
    passes = pd.concat([analysis.pass_times, analysis.pass_times.replace(names)])
    figure = figure_of("upcycled_pairs", replace(analysis, pass_times=passes))
    assert [len(lines(axes)) > 0 for axes in figure.axes].count(False) == 1


def test_runs_stand_beside_the_diagonal_where_they_take_what_their_passes_need():
    one = required_time(Evidence(campaign(unrelated()), SIZES, None, SETTINGS))
    one = one.assign(family=["moe", "moe", "dense", "dense"], campaign="published")
    other = one.assign(decode_ms=one["decode_ms"] / 5, campaign="synthetic")
    figure = figure_of("required_time", replace(full(), required_time=pd.concat([one, other])))
    [axes] = figure.axes
    bound, *series = axes.get_lines()
    diagonal = bound.get_xydata()
    assert np.array_equal(diagonal[:, 0], diagonal[:, 1])
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim() == axes.get_ylim() == pytest.approx(tuple(diagonal[:, 0]))
    assert [len(one.get_xydata()) for one in series] == [2, 2, 2, 2]
    assert series[0].get_xydata().tolist() == [[1.068, 1.602]] * 2
    assert len({one.get_marker() for one in series}) == 4
    assert legend(figure) == [
        f"{name}, {of} (2)" for name in ("published", "synthetic") for of in ("MoE", "dense")
    ]


def test_every_colour_of_a_line_is_told_from_white_paper():
    """WCAG 2 asks for a contrast of 3 of what a figure draws."""

    def luminance(colour):
        shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    colours = [*style._DRAFT_COLOURS, *chain(*(pair[0] for pair in style._FAMILIES.values()))]
    assert all(1.05 / (luminance(colour) + 0.05) >= 3 for colour in colours)
