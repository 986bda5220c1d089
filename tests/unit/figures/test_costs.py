"""The figures and tables of the cost model show its numbers."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.analysis.labelled_costs import pass_costs, predicted_cells
from specmoe.claims.printed_numbers import CELLS
from specmoe.figures.figures import FIGURES, NOT_MEASURED
from specmoe.paper.tables import NOT_MEASURED as NO_TABLE
from specmoe.paper.tables import TABLES

from ..paper.test_tables import commands, render, rows
from ..paper_analyses import costed, full
from ..simulated_rounds import pass_cost
from .test_figures import legend, lines, words

ANALYSIS = costed()


def test_a_line_for_every_target_and_the_experts_of_the_moe_beside_them():
    figure = FIGURES["verification_cost"](ANALYSIS)
    steps, experts = figure.axes
    moe, dense = lines(steps)
    assert moe == pytest.approx([pass_cost(width) for width in (1, 2, 3, 5, 9)], rel=0.05)
    assert dense == pytest.approx([pass_cost(width) for width in (1, 2, 3, 5, 9, 17, 33)], rel=0.05)
    (visited,) = lines(experts)
    assert visited[:2] == pytest.approx([8, 256 * (1 - (1 - 8 / 256) ** 2)])
    assert legend(figure) == ["MoE Q4", "Dense 4B"]


def test_targets_without_experts_have_no_panel_for_them():
    passes = ANALYSIS.verification
    dense = replace(ANALYSIS, verification=passes[passes["target"] == "dense_4b"])
    assert len(FIGURES["verification_cost"](dense).axes) == 1


def test_every_cell_is_a_dot_in_each_panel_and_those_beyond_the_widths_are_hollow():
    panels = FIGURES["predicted_speedup"](ANALYSIS).axes
    for axes in panels:
        dots = [line for line in axes.get_lines() if line.get_marker() in "o^"]
        assert sum(len(line.get_xdata()) for line in dots) == 3
        hollow = [line for line in dots if line.get_markerfacecolor() == "white"]
        assert [len(line.get_xdata()) for line in hollow] == [1]
        low, high = axes.get_xlim()
        assert all(low < value < high for line in dots for value in line.get_ydata())


def test_break_even_has_a_panel_per_target_with_what_was_measured():
    moe, dense = FIGURES["break_even"](ANALYSIS).axes
    assert [axes.get_title() for axes in (moe, dense)] == ["MoE Q4", "Dense 4B"]
    cells = predicted_cells(ANALYSIS)
    measured = cells.loc[cells["target"] == "moe_q4", "acceptance_rate"].tolist()
    assert lines(moe)[-1] == pytest.approx(measured)


def test_the_roofline_shows_time_bound_and_share():
    times, share = FIGURES["roofline"](ANALYSIS).axes
    dense = pass_costs(ANALYSIS).set_index("target").loc["dense_4b"]
    assert lines(times)[-1] == pytest.approx([4.4e9 / 400e9 * 1000] * len(dense))
    assert lines(share)[-1] == pytest.approx((11 / dense["ms"]).tolist())


def test_a_machine_of_unknown_bandwidth_has_no_roofline():
    passes = ANALYSIS.verification.assign(bound_ms=float("nan"))
    assert words(FIGURES["roofline"](replace(ANALYSIS, verification=passes))) == [NOT_MEASURED]


@pytest.mark.parametrize("name", ["verification", "break_even", "prediction_errors"])
def test_what_was_not_measured_is_said(name):
    assert render(name, full()) == NO_TABLE


@pytest.mark.parametrize("name", set(TABLES) - {"claims"})
def test_every_table_has_rows_of_equal_length(name):
    text = render(name, ANALYSIS)
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicol" not in line]
    assert len({re.sub(r"\\&", "", line).count("&") for line in body}) == 1
    assert "nan" not in text


def test_the_break_even_table_has_every_gamma_and_the_cells_measured():
    shown = [(row[2], row[9]) for row in rows("break_even", ANALYSIS)[2:]]
    moe = [("1", "--"), ("2", "--"), ("4", "B"), ("8", "--"), (r"16$^\ast$", "B")]
    dense = [("1", "--"), ("2", "--"), ("4", "D"), ("8", "--"), ("16", "--"), ("32", "--")]
    assert shown == moe + dense


def test_the_text_tells_the_errors_of_all_cells():
    shown = commands(ANALYSIS)
    assert shown["PredictionCells"] == "3"
    (whole,) = ANALYSIS.prediction_errors.query("suite == 'all'").to_dict("records")
    assert shown["PredictionErrorWorst"] == f"{100 * whole['worst']:.1f}"
    assert "PredictionCells" not in commands(full())


def with_ceilings(source):
    """Return a campaign with a cell of texts and one of the sweep, and what the study prints."""
    cell = {
        **{"protocol": "published", "engine": "e", "target": "moe_q4", "draft": "draft_0.8b"},
        **{"runs": 12, "acceptance_rate": 0.1, "mean_accepted_length": 1.5},
        **{"speedup": 1.2, "ceiling": 0.5, "above": 11, "draft_basis": "by hand"},
    }
    stated = {"what": "speedup moe_q4 draft_0.8b 8", "source": CELLS, "printed": "1.18"}
    stated |= {"relation": "", "digits": 2, "recomputed": 1.2, "measured": None}
    return replace(
        full(),
        campaign=full().campaign.assign(source=source),
        ceilings=pd.DataFrame(
            [cell | {"suite": "B", "gamma": 8}, cell | {"suite": "F", "gamma": 8}]
        ),
        comparison=pd.DataFrame([stated]),
    )


def test_the_study_has_its_printed_speedups_beside_its_ceilings():
    head, of_texts, of_lengths = rows("ceilings", with_ceilings("published"))
    assert head[6:] == ["Printed", "Speedup", "Ceiling", "Runs above"]
    assert of_texts[6:] == ["1.18", "1.20", "0.50", "11 / 12"]
    assert of_lengths[2:4] + of_lengths[6:7] == ["F", "8", "--"]


def test_other_campaigns_have_ceilings_without_what_the_study_prints():
    analysis = with_ceilings("measured")
    assert rows("ceilings", analysis)[0][6:] == ["Speedup", "Ceiling", "Runs above"]
    assert commands(analysis)["CeilingRunsAbove"] == "22"
