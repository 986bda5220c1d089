"""Tables as LaTeX: one tabular each, names once in a group, and nothing that runs."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.paper import tables

from ..paper_analyses import full, relabelled
from ..rendered_tables import MAKERS, TABLES, filled, latex


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
    if name not in filled(analysis := make()):
        return
    text = latex(name, analysis)
    kind = re.search(r"\\begin\{(tabular|longtable)\}", text)[1]
    assert text.endswith(f"\\end{{{kind}}}\n")
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicol" not in line]
    assert len({re.sub(r"\\&", "", line).count("&") for line in body}) == 1
    assert "nan" not in text
    assert "None" not in text


def test_a_table_of_many_rows_goes_over_pages_with_long_names_in_several_lines():
    many = replace(full(), levels=pd.concat([full().levels] * 31))
    paragraph = r"\begin{longtable}{>{\raggedright\arraybackslash}p{0.15\linewidth}"
    assert paragraph in latex("levels", relabelled(many, "moe_q4", "A name " * 6))
    assert r"\begin{longtable}{llr" in latex("levels", many)
    assert r"\begin{tabular}{llr" in latex("levels", full())


@pytest.mark.parametrize("name", ["models", "speculation", "levels"])
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
    assert "The first" not in latex("levels", full())
