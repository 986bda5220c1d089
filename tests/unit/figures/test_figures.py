"""The figures show the analysis's numbers, survive small campaigns, and never change by chance."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from specmoe.analysis.labelled import text_cells
from specmoe.figures import style
from specmoe.figures.figures import FIGURES, NOT_MEASURED, save

from ..paper_analyses import (
    analysis_of,
    baseline_runs,
    compared,
    costed,
    full,
    relabelled,
    sampled,
    several_types,
    several_ways,
    single,
    speculative_runs,
    without_drafts,
)

PAPER = Path(__file__).parents[3] / "paper"
# What has something to show in figures of which `full` has nothing.
SHOWING = {
    "protocols": several_ways,
    "side_by_side": compared,
    "temperatures": sampled,
    "types": several_types,
    **dict.fromkeys(["verification_cost", "predicted_speedup", "break_even", "roofline"], costed),
}


def drawn(figure):
    """Return the figure after its layout was computed, at its own resolution."""
    with style.applied():
        FigureCanvasAgg(figure).draw()
    return figure


def words(figure):
    """Return the texts a figure shows outside of its axes."""
    return [text.get_text() for text in figure.texts]


def lines(axes):
    """Return the lines of an axes with markers, each as its list of y values."""
    return [list(line.get_ydata()) for line in axes.get_lines() if line.get_marker() in "os^v"]


def legend(figure):
    """Return the words of a figure's legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_figure_has_a_caption_and_every_caption_a_figure():
    assert sorted(FIGURES) == sorted(path.stem for path in PAPER.glob("captions/*.rst"))


@pytest.mark.parametrize("name", FIGURES)
def test_the_supplement_includes_every_figure(name):
    assert rf"\floatfigure{{{name}}}" in (PAPER / "supplement.tex").read_text()


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("make", [full, single, without_drafts, *SHOWING.values()])
def test_every_figure_fits_the_page_whatever_was_measured(name, make):
    figure = drawn(FIGURES[name](make()))
    assert figure.get_figwidth() <= style.WIDTH_IN
    left, bottom, right, top = figure.get_tightbbox().extents
    assert min(left, bottom) > -0.02
    assert right < figure.get_figwidth() + 0.02
    assert top < figure.get_figheight() + 0.02


@pytest.mark.parametrize("name", FIGURES)
def test_legend_axes_and_labels_do_not_overlap(name):
    figure = drawn(FIGURES[name](SHOWING.get(name, full)()))
    boxes = [figure.legends[0].get_window_extent()]
    boxes += [label.get_window_extent() for label in figure.texts if label.get_text()]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    pairs = [(one, other) for index, one in enumerate(boxes) for other in boxes[:index]]
    assert not any(one.padded(-1).overlaps(other) for one, other in pairs)


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_analysis_gives_the_same_bytes(name, tmp_path):
    for attempt in ("first", "second"):
        save(FIGURES[name](SHOWING.get(name, full)()), tmp_path / attempt / name)
    for suffix in (".pdf", ".png"):
        first, second = (
            (tmp_path / attempt / f"{name}{suffix}").read_bytes() for attempt in ("first", "second")
        )
        assert first == second


@pytest.mark.parametrize("name", set(FIGURES) - {"throughput"})
def test_a_campaign_without_drafts_says_so(name):
    assert words(FIGURES[name](without_drafts())) == [NOT_MEASURED]


def test_a_campaign_without_a_sweep_says_so():
    assert words(FIGURES["prompt_lengths"](single())) == [NOT_MEASURED]


def test_throughput_of_a_campaign_without_drafts_shows_the_baselines():
    (axes,) = FIGURES["throughput"](without_drafts()).axes
    assert [bar.get_height() for bar in axes.patches] == [50]


def test_throughput_shows_the_baseline_then_every_draft_and_gamma():
    (axes,) = FIGURES["throughput"](full()).axes
    assert [bar.get_height() for bar in axes.patches] == [50, 60, 70, 50, 50, 45, 40]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["–", *"484", "–", *"48"]


def test_many_targets_wrap_into_rows():
    rows = baseline_runs(["moe_q4", "dense_4b"], ["code", "passage-64"], 1)
    for target in ("moe_q4", "dense_4b"):
        for gamma in range(1, 19):
            rows += speculative_runs("B", target, "draft_2b", gamma, [60])
    assert len(FIGURES["throughput"](analysis_of(rows)).axes) == 2


def test_speedup_by_gamma_has_a_panel_per_draft_and_a_line_per_target():
    small, large = FIGURES["speedup_by_gamma"](full()).axes
    assert lines(small) == [pytest.approx([1.2, 1.4]), pytest.approx([0.9, 0.8])]
    assert lines(large) == [pytest.approx([1.0])]
    assert [small.get_title(), large.get_title()] == ["draft Draft 0.8B", "draft Draft 2B"]


def test_nothing_drawn_lies_outside_the_axes():
    for name in ("speedup_by_gamma", "speedup_by_total_parameters", "acceptance_by_gamma"):
        for axes in FIGURES[name](full()).axes:
            low, high = axes.get_ylim()
            assert all(low < value < high for line in lines(axes) for value in line)


def test_what_was_measured_in_several_ways_has_a_line_for_each():
    figure = FIGURES["protocols"](several_ways())
    acceptance, speedup, failures = figure.axes
    assert legend(figure) == ["llama-server, current-cpu", "the study's commands, march-cpu"]
    assert lines(acceptance) == [[0.5, 0.5]] * 2
    assert lines(speedup) == [pytest.approx([0.8, 0.6]), pytest.approx([1.2, 1.4])]
    assert lines(failures) == [[0, 0], [100, 200]]


def test_a_campaign_that_measured_one_way_says_so():
    assert words(FIGURES["protocols"](full())) == [NOT_MEASURED]


def test_temperature_has_a_line_for_acceptance_and_one_for_speedup():
    figure = FIGURES["temperatures"](sampled())
    acceptance, speedup = figure.axes
    assert legend(figure) == ["MoE Q4, draft Draft 0.8B, γ = 4"]
    assert lines(acceptance) == [[0.5, 0.5]]
    assert lines(speedup) == [pytest.approx([1.2, 1.2])]
    assert list(speedup.get_xticks()) == [0, 0.7]


def test_types_are_drawn_over_the_bytes_that_a_pass_reads():
    figure = FIGURES["types"](several_types())
    (axes,) = figure.axes
    assert legend(figure) == ["MoE, γ = 4"]
    assert lines(axes) == [pytest.approx([1.2, 1.5])]
    assert "GB" in figure.get_supxlabel()


def test_acceptance_starts_at_zero():
    for axes in FIGURES["acceptance_by_gamma"](full()).axes:
        assert axes.get_ylim()[0] == 0


def test_speedup_by_parameters_is_at_the_middle_gamma_and_says_so():
    axes = FIGURES["speedup_by_total_parameters"](full()).axes[0]
    assert axes.get_title() == "draft Draft 0.8B, γ = 4"
    assert lines(axes) == [pytest.approx([0.9]), pytest.approx([1.2])]


def test_sizes_that_spread_wide_are_on_a_logarithmic_axis():
    assert FIGURES["speedup_by_total_parameters"](full()).axes[0].get_xscale() == "log"
    assert FIGURES["speedup_by_active_parameters"](full()).axes[0].get_xscale() == "linear"


def test_prompt_lengths_show_rates_and_speedup_with_the_lengths_as_ticks():
    left, right = FIGURES["prompt_lengths"](full()).axes
    assert lines(left) == [[50, 50], [55, 65]]
    assert lines(right) == [pytest.approx([1.1, 1.3])]
    assert list(right.get_xticks()) == [64, 1024]


def test_prompt_lengths_show_the_baseline_of_a_suite_once_whatever_was_drafted():
    analysis = full()
    more = analysis.sweep.assign(gamma=4)
    figure = FIGURES["prompt_lengths"](replace(analysis, sweep=pd.concat([analysis.sweep, more])))
    assert [entry for entry in legend(figure) if "without" in entry] == ["MoE Q4, without draft"]
    assert len(lines(figure.axes[0])) == 3
    other = pd.concat([analysis.sweep, more.assign(suite="A")])
    figure = FIGURES["prompt_lengths"](replace(analysis, sweep=other))
    assert [entry for entry in legend(figure) if "without" in entry] == [
        "MoE Q4 (suite A), without draft",
        "MoE Q4 (suite F), without draft",
    ]


@pytest.mark.parametrize("label", ["$x^$ \\frac{", "_hidden", "a" * 300, "two\nlines", "%s {}"])
@pytest.mark.parametrize("name", FIGURES)
def test_a_label_is_shown_as_text_whatever_is_in_it(name, label):
    figure = drawn(FIGURES[name](relabelled(SHOWING.get(name, full)(), "moe_q4", label)))
    assert figure.get_tightbbox().x1 < figure.get_figwidth() + 0.02
    titled = {"protocols", "side_by_side", "types"}
    if name not in {"throughput", "required_time", "break_even", *titled}:
        assert any(style.short(label) in entry for entry in legend(figure))


def test_every_target_has_a_look_of_its_own_without_colour():
    cells = text_cells(full())
    looks = style.target_looks(cells).values()
    assert len({look.marker for look in looks}) == len(looks)


def test_colours_of_families_differ_in_greyscale():
    def luminance(colour):
        red, green, blue = (int(to_hex(colour)[i : i + 2], 16) for i in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    looks = style.target_looks(text_cells(full()))
    assert abs(luminance(looks["moe_q4"].colour) - luminance(looks["dense_4b"].colour)) > 40


def test_importing_the_figures_chooses_no_backend_and_opens_no_window(root):
    code = (
        "import specmoe.figures.figures, matplotlib as m; print(m.rcParams._get_backend_or_none())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root / "workflow/scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() in {"None", "agg"}
