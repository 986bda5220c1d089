"""The page's tables show the numbers of the paper's, each row whole, each column sortable."""

import re
from collections import Counter

import pytest

from specmoe.figures.figures import FIGURES
from specmoe.page.tables import COLUMNS, MEANINGS, page_tables
from specmoe.paper.tables import NOT_MEASURED, TABLES, render_table

from ..paper_analyses import (
    compared,
    controlled,
    costed,
    full,
    sampled,
    several_types,
    several_ways,
    single,
    without_drafts,
)

MAKERS = [
    full,
    single,
    without_drafts,
    sampled,
    several_types,
    several_ways,
    controlled,
    costed,
    compared,
]


def shown(table):
    """Return a table as lists of texts."""
    return [[cell.text for cell in row] for row in [*table.rows, *table.totals]]


def numbers(text):
    """Return how often each number stands in a text."""
    return Counter(re.findall(r"\d+(?:\.\d+)?", text))


def numbers_of_paper(name, analysis, root):
    """Return how often each number stands in the body of a table of the paper."""
    text = render_table(name, analysis, root / "paper/templates")
    if text == NOT_MEASURED:
        return Counter()
    body = text.rpartition(r"\endfoot")[2].partition(r"\midrule")[2] or text.rpartition("foot")[2]
    body = re.sub(r"\\multicolumn\{\d+\}\{(?:[^{}]|\{[^{}]*\})*\}", "", body)
    body = re.sub(r"\\(?:cmidrule\(lr\)\{[^}]*\}|addlinespace(?:\[[^]]*\])?)", "", body)
    return numbers(body.replace(r"\,", ""))


def numbers_of_page(name, tables):
    """Return how often each number stands in the page's tables that hold a table of the paper."""
    parts = ["comparison", "headline"] if name == "comparison" else [name]
    cells = [
        cell for part in parts if part in tables for row in shown(tables[part]) for cell in row
    ]
    return numbers("\n".join(cells).replace("\N{NARROW NO-BREAK SPACE}", ""))


def test_every_table_of_the_paper_is_on_the_page():
    assert set(COLUMNS) == {*TABLES, "headline"}
    assert len(set(COLUMNS) & set(FIGURES)) < len(FIGURES)


@pytest.mark.parametrize("make", MAKERS)
def test_every_number_of_the_tables_of_the_paper_is_in_the_pages(make, root):
    analysis = make()
    tables = page_tables(analysis)
    for name in TABLES:
        assert not numbers_of_paper(name, analysis, root) - numbers_of_page(name, tables), name


@pytest.mark.parametrize("make", MAKERS)
def test_every_row_has_a_cell_for_each_column_and_none_is_null(make):
    for table in page_tables(make()).values():
        assert table.rows
        for row in shown(table):
            assert len(row) == len(table.columns)
            assert not {"nan", "None", "<NA>", ""} & set(row[1:])


def test_a_table_without_rows_is_left_out():
    assert {"speculation", "drafts", "advice", "claims", "temperatures"}.isdisjoint(
        page_tables(without_drafts())
    )


def test_every_row_says_whose_it_is():
    # The paper leaves out what the row above says; here rows may be put in another order.
    first = [row[:2] for row in shown(page_tables(full())["speculation"])]
    assert first == [
        ["MoE Q4", "Draft 0.8B"],
        ["MoE Q4", "Draft 0.8B"],
        ["MoE Q4", "Draft 2B"],
        ["Dense 4B", "Draft 0.8B"],
        ["Dense 4B", "Draft 0.8B"],
    ]


def test_numbers_are_sorted_by_their_values_and_not_by_their_texts():
    row = page_tables(full())["models"].rows[0]
    assert (row[2].text, row[2].key) == ("3.0\N{NARROW NO-BREAK SPACE}B", 3e9)
    speedup = page_tables(full())["speculation"].rows[0][4]
    assert speedup.text == "1.20 [1.20, 1.20]"
    assert speedup.key == pytest.approx(1.2)


def test_what_was_not_measured_is_a_dash_and_has_nothing_to_be_sorted_by():
    warm = page_tables(sampled())["temperatures"].rows[0]
    assert [(cell.text, cell.key) for cell in warm[-2:]] == [("–", None)] * 2


def test_the_best_speedup_of_each_target_stands_out_and_no_other():
    rows = page_tables(full())["speculation"].rows
    assert [row[4].text for row in rows if row[4].strong] == [
        "1.40 [1.40, 1.40]", "0.90 [0.90, 0.90]"
    ]  # fmt: skip


def test_sums_stay_where_they_are():
    table = page_tables(full())["suites"]
    assert [row[0].text for row in table.rows] == ["B", "F"]
    assert [cell.text.replace("\N{NARROW NO-BREAK SPACE}", "") for cell in table.totals[0]] == [
        "", "Total", "17", "1234", "1233"
    ]  # fmt: skip


def test_the_checks_of_the_audit_are_explained_and_counted():
    [row] = [
        row for row in shown(page_tables(controlled(failed=1))["findings"]) if row[0] == "controls"
    ]
    assert row == ["controls", MEANINGS["controls"], "1 / 4", "–"]


def test_drafts_stand_side_by_side_under_their_names():
    table = page_tables(full())["drafts"]
    assert [column.of for column in table.columns] == [
        "", "", *["Draft 0.8B"] * 3, *["Draft 2B"] * 3
    ]  # fmt: skip
    assert shown(table)[1] == ["MoE Q4", "8", "1.40", "50.0", "70.0", "–", "–", "–"]
