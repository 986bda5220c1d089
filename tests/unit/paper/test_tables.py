"""Tables as LaTeX: one tabular each, names once in a group, and nothing that runs."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.claims.printed_numbers import CELLS
from specmoe.paper import tables
from specmoe.paper.tables import NOT_MEASURED

from ..paper_analyses import costed, full, relabelled, several_methods, single, without_drafts
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


def test_numbers_stand_apart_from_their_deviations_and_intervals():
    assert lines("speculation", full())[1] == [
        "MoE Q4", "Draft 0.8B", "4", "1.20", "[1.20, 1.20]", "60.0", r"$\pm$\,0.0", "1.20",
        "[1.20, 1.20]", "1.20", "50.0", "3.00",
    ]  # fmt: skip
    assert lines("speculation", single())[1][3:7] == [r"\textbf{1.20}", "", "60.0", ""]


def test_names_stand_once_in_a_group():
    names = [row[:2] for row in lines("speculation", full())[1:]]
    assert names == [
        ["MoE Q4", "Draft 0.8B"], ["", ""], ["", "Draft 2B"], ["Dense 4B", "Draft 0.8B"], ["", ""]
    ]  # fmt: skip


def test_a_long_name_in_a_table_over_pages_takes_several_lines():
    analysis = relabelled(several_methods(), "moe_q4", "A name " * 6)
    assert r"\begin{longtable}{>{\raggedright\arraybackslash}p{0.15\linewidth}" in latex(
        "prompts", replace(analysis, by_prompt=_two_prompts(analysis))
    )
    assert r"\begin{longtable}{llr" in latex(
        "prompts", replace(full(), by_prompt=_two_prompts(full()))
    )


def _two_prompts(analysis):
    return pd.concat([analysis.by_prompt, analysis.by_prompt.assign(prompt="other")])


def test_totals_stand_below_a_rule():
    assert latex("suites", full()).splitlines()[-4:-2] == [
        r"\midrule", r" & Total & 17 & 1\,234 & 1\,233 \\",
    ]  # fmt: skip


def test_words_stand_over_the_columns_that_share_them():
    text = latex("drafts", full())
    assert text.startswith(r"\begin{tabular}{lrrrrrrr}")
    assert r" &  & \multicolumn{3}{c}{Draft 0.8B} & \multicolumn{3}{c}{Draft 2B} \\" in text
    assert "\\cmidrule(lr){3-5}\n\\cmidrule(lr){6-8}\n" in text


@pytest.mark.parametrize(
    "name",
    [
        *("speculation", "drafts", "prompt_lengths", "identity"),
        *("verification", "break_even", "prediction_errors"),
    ],
)
def test_a_campaign_without_drafts_says_so(name):
    assert latex(name, without_drafts()) == NOT_MEASURED


@pytest.mark.parametrize("name", ["models", "baselines", "speculation", "drafts", "identity"])
def test_a_label_cannot_run_latex(name):
    text = latex(name, relabelled(full(), "moe_q4", r"\input{/etc/passwd} & $x^2 % #"))
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\} \& \$x\textasciicircum{}2 \% \#" in text


@pytest.mark.parametrize("label", ["[9cm]", "*"])
def test_a_name_at_the_start_of_a_row_is_no_argument_of_the_line_end_before_it(label):
    assert f"\n{{}}{label} & MoE" in latex("models", relabelled(full(), "moe_q4", label))


def test_the_break_even_table_has_every_gamma_and_the_cells_measured():
    shown = [(row[2], row[9]) for row in lines("break_even", costed())[2:]]
    moe = [("1", "--"), ("2", "--"), ("4", "B"), ("8", "--"), (r"16$^*$", "B")]
    dense = [("1", "--"), ("2", "--"), ("4", "D"), ("8", "--"), ("16", "--"), ("32", "--")]
    assert shown == moe + dense


def with_ceilings(source):
    """Return a campaign with a cell of texts, a cell of the sweep, and a printed speedup."""
    cell = {
        **{"protocol": "published", "engine": "e", "target": "moe_q4", "draft": "draft_0.8b"},
        **{"runs": 12, "acceptance_rate": 0.1, "tokens_per_step": 1.5},
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
    head, _, of_texts, of_lengths = lines("ceilings", with_ceilings("published"))  # on each page
    assert head[6:] == ["Printed", "Speedup", "Ceiling", "Above / runs"]
    assert of_texts[6:] == ["1.18", "1.20", "0.50", "11 / 12"]
    assert of_lengths[2:4] + of_lengths[6:7] == ["F", "8", "--"]


def test_other_campaigns_have_ceilings_without_printed_speedups():
    assert lines("ceilings", with_ceilings("measured"))[0][6:] == [
        "Speedup",
        "Ceiling",
        "Above / runs",
    ]


def test_a_long_table_shows_its_first_rows_and_names_the_file_of_all(monkeypatch):
    whole = lines("speculation", full())
    monkeypatch.setattr(tables, "ON_A_PAGE", 2)
    text = latex("speculation", full())
    assert f"The first 2 of {len(whole) - 1} rows; all are in results/" in text
    assert "/tables/speculation.csv" in text
    assert lines("speculation", full())[:3] == whole[:3]
    assert "The first" not in latex("baselines", full())
