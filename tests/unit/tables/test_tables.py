"""Every table has one specification, whole rows, columns that can be sorted, and its units."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from specmoe.paper import latex as as_latex
from specmoe.paper.latex import render_table
from specmoe.tables.exhibits import tables_of

from ..paper_analyses import analysis_of, baseline_runs, costed, full, relabelled, speculative_runs
from ..rendered_tables import MAKERS, latex


def test_a_new_table_is_one_entry():
    table = tables_of(full(), Path(__file__).with_name("one_entry.yaml"))["short_drafts"]
    assert {(row[1].text, row[0].strong) for row in table.rows} == {("5", True), ("5", False)}
    assert r"\textbf{MoE Q4} & 5" in render_table("short_drafts", table, full())


@pytest.mark.parametrize("make", MAKERS)
def test_every_table_has_whole_rows_and_is_one_tabular(make):
    analysis = make()
    for name, table in tables_of(analysis).items():
        assert table.rows
        for row in table.rows:
            assert len(row) == len(table.columns)
            assert not {"nan", "None", "<NA>", ""} & {cell.whole for cell in row[1:]}
        text = latex(name, analysis)
        kind = re.search(r"\\begin\{(tabular|longtable)\}", text)[1]
        assert text.endswith(f"\\end{{{kind}}}\n")
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        body = [line for line in body if "multicol" not in line]
        assert len({re.sub(r"\\&", "", line).count("&") for line in body}) == 1
        assert not re.search("nan|None", text)


def test_a_column_without_values_is_excluded_if_it_is_optional():
    analysis = full()
    without = replace(analysis, settings=analysis.settings.assign(end_to_end=None))
    for given, there in [(analysis, True), (without, False)]:
        columns = tables_of(given)["speculation"].columns
        assert ("With the prompt" in [column.head.en for column in columns]) == there


def test_numbers_are_sorted_by_their_values_and_not_by_their_texts():
    row = tables_of(full())["models"].rows[0]
    assert (row[2].text, row[2].key) == ("3.0\N{NARROW NO-BREAK SPACE}B", 3e9)
    speedup = tables_of(full())["speculation"].rows[0][4]
    assert speedup.whole == "1.20 [1.20, 1.20]"
    assert speedup.key == pytest.approx(1.2)


def test_what_was_not_measured_is_a_dash_and_has_nothing_to_be_sorted_by():
    unknown = replace(full(), settings=full().settings.assign(acceptance_rate=None))
    table = tables_of(unknown)["speculation"]
    place = [column.key for column in table.columns].index("acceptance_rate")
    setting = table.rows[1][place]
    assert (setting.text, setting.key) == ("–", None)


def test_a_model_has_its_rate_if_it_was_measured_in_one_way_alone():
    analysis = full()
    measured = dict(zip(analysis.models["model"], tables_of(analysis)["models"].rows, strict=True))
    rates = analysis.baselines.set_index("target")["tokens_per_second"]
    for model, row in measured.items():
        assert row[8].text == (f"{rates[model]:.1f}" if model in rates else "–")
    twice = pd.concat([analysis.baselines, analysis.baselines.assign(engine="another")])
    assert len(tables_of(replace(analysis, baselines=twice))["models"].columns) == 8


def test_a_residual_has_its_interval_however_wide():
    costs = costed().verification.assign(overhead_ms=2.0, overhead_ms_low=0.1, overhead_ms_high=9.0)
    assert "2.0 [0.1, 9.0]" in latex("verification", replace(costed(), verification=costs))


def test_two_suites_with_the_same_setting_are_told_apart():
    runs = baseline_runs(["moe_q4"], ["code"], 1)
    for suite, rate in [("B", 60), ("C", 70)]:
        runs += speculative_runs(suite, "moe_q4", "draft_2b", 4, [rate])
    told = tables_of(analysis_of(runs))["speculation"].rows
    assert [row[0].text for row in told] == ["MoE Q4 (suite B)", "MoE Q4 (suite C)"]


def test_a_table_of_many_rows_goes_over_pages_with_long_names_in_several_lines():
    many = replace(full(), levels=pd.concat([full().levels] * 31))
    paragraph = r"\begin{longtable}{>{\raggedright\arraybackslash}p{0.15\linewidth}"
    assert paragraph in latex("levels", relabelled(many, "moe_q4", "A name " * 6))
    assert r"\begin{longtable}{llr" in latex("levels", many)
    assert r"\begin{tabular}{llr" in latex("levels", full())


@pytest.mark.parametrize(
    ("label", "printed"),
    [
        # At the start of a row it would be an argument of the line end before it.
        *(("[9cm]", "\n{}[9cm] & MoE"), ("*", "\n{}* & MoE")),
        (r"\input{/etc/passwd} & $x^2", r"\textbackslash{}input\{/etc/passwd\} \& \$x\textasc"),
    ],
)
def test_a_label_cannot_run_latex(label, printed):
    assert printed in latex("models", relabelled(full(), "moe_q4", label))


def test_a_long_table_shows_its_first_rows_and_names_the_file_of_all(monkeypatch):
    whole = latex("speculation", full())
    monkeypatch.setattr(as_latex, "ON_A_PAGE", 2)
    text = latex("speculation", full())
    assert "The first 2 of 5 rows; all are in results/by\\_hand/tables/speculation.csv" in text
    assert whole.startswith(text[: text.index(r"\midrule \multicolumn")])
    assert "The first" not in latex("levels", full())
