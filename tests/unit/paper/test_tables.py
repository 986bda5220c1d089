"""Tables as LaTeX: one tabular each, names once in a group, and nothing that runs."""

import re

import pytest

from specmoe.paper import tables
from specmoe.paper.tables import NOT_MEASURED

from ..paper_analyses import full, relabelled, without_drafts
from ..rendered_tables import MAKERS, TABLES, latex


def lines(name, analysis):
    """Return the lines of a table's cells, each as a list."""
    return [
        [cell.strip() for cell in line.removesuffix(r"\\").split(" & ")]
        for line in latex(name, analysis).splitlines()
        if line.endswith(r"\\")
    ]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("make", MAKERS)
def test_every_table_is_one_tabular_with_rows_of_equal_length(name, make):
    text = latex(name, make())
    kind = re.search(r"\\begin\{(tabular|longtable)\}", text)[1]
    assert text.endswith(f"\\end{{{kind}}}\n")
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicol" not in line]
    assert len({re.sub(r"\\&", "", line).count("&") for line in body}) == 1
    assert "nan" not in text
    assert "None" not in text


def test_a_long_name_in_a_table_over_pages_takes_several_lines():
    analysis = relabelled(full(), "moe_q4", "A name " * 6)
    paragraph = r"\begin{longtable}{>{\raggedright\arraybackslash}p{0.15\linewidth}"
    assert paragraph in latex("levels", analysis)
    assert r"\begin{longtable}{llr" in latex("levels", full())


@pytest.mark.parametrize(
    "name",
    [
        *("speculation", "levels"),
        *("verification", "break_even", "prediction_errors"),
    ],
)
def test_a_campaign_without_drafts_says_so(name):
    assert latex(name, without_drafts()) == NOT_MEASURED


@pytest.mark.parametrize("name", ["models", "baselines", "speculation", "levels"])
def test_a_label_cannot_run_latex(name):
    text = latex(name, relabelled(full(), "moe_q4", r"\input{/etc/passwd} & $x^2 % #"))
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\} \& \$x\textasciicircum{}2 \% \#" in text


@pytest.mark.parametrize("label", ["[9cm]", "*"])
def test_a_name_at_the_start_of_a_row_is_no_argument_of_the_line_end_before_it(label):
    assert f"\n{{}}{label} & MoE" in latex("models", relabelled(full(), "moe_q4", label))


def test_a_long_table_shows_its_first_rows_and_names_the_file_of_all(monkeypatch):
    whole = lines("speculation", full())
    monkeypatch.setattr(tables, "ON_A_PAGE", 2)
    text = latex("speculation", full())
    assert f"The first 2 of {len(whole) - 1} rows; all are in results/" in text
    assert "/tables/speculation.csv" in text
    assert lines("speculation", full())[:3] == whole[:3]
    assert "The first" not in latex("baselines", full())
