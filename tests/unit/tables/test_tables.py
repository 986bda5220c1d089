"""Every table has one specification, whole rows, columns that can be sorted, and its units."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from pydantic import ValidationError

from specmoe.tables import rows, study_rows
from specmoe.tables.columns import TableColumn
from specmoe.tables.rows import Rows

from ..paper_analyses import (
    analysis_of,
    baseline_runs,
    controlled,
    full,
    several_methods,
    speculative_runs,
    without_drafts,
)
from ..rendered_tables import MAKERS, TABLES, page_tables, shown
from ..rendered_tables import rows as texts


def test_every_function_of_rows_has_its_table():
    named = {
        name
        for module in (rows, study_rows)
        for name, value in vars(module).items()
        if getattr(value, "__annotations__", {}).get("return") in (Rows, pd.DataFrame)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert named - {"mark_unpaired"} <= set(TABLES)


@pytest.mark.parametrize("about", TABLES.values())
def test_words_are_whole_in_both_languages_and_the_data_exists(about):
    heads = [column.head for column in [*about.columns, *about.each]]
    assert all(english and chinese for english, chinese in [about.title, about.note, *heads])
    assert not re.search(r"\d", " ".join([*about.title, *about.note]))
    assert all(hasattr(full(), name) for name in about.data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": "red"}, "colour"),
        ({"only": "screen"}, "'paper' or 'page'"),
    ],
)
def test_a_wrong_column_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        TableColumn(key="runs", head=("Runs", "运行"), **fields)


@pytest.mark.parametrize("make", MAKERS)
def test_every_row_has_a_cell_for_each_column_and_none_is_null(make):
    for table in page_tables(make()).values():
        assert table.rows
        for row in shown(table):
            assert len(row) == len(table.columns)
            assert not {"nan", "None", "<NA>", ""} & set(row[1:])


@pytest.mark.parametrize(
    ("make", "left_out"),
    [
        (without_drafts, {"speculation", "advice", "claims", "levels"}),
        (several_methods, {"levels"}),
        (controlled, {"levels"}),
    ],
)
def test_a_table_without_rows_is_left_out(make, left_out):
    assert left_out.isdisjoint(page_tables(make()))


def test_a_column_without_values_is_left_out_if_it_is_optional():
    analysis = full()
    without = replace(analysis, cells=analysis.cells.assign(speedup_unpaired=None))
    for given, there in [(analysis, True), (without, False)]:
        columns = page_tables(given)["speculation"].columns
        assert ("Unpaired" in [column.head.en for column in columns]) == there


def test_numbers_are_sorted_by_their_values_and_not_by_their_texts():
    row = page_tables(full())["models"].rows[0]
    assert (row[2].text, row[2].key) == ("3.0\N{NARROW NO-BREAK SPACE}B", 3e9)
    speedup = page_tables(full())["speculation"].rows[0][3]
    assert speedup.whole == "1.20 [1.20, 1.20]"
    assert speedup.key == pytest.approx(1.2)


def test_what_was_not_measured_is_a_dash_and_has_nothing_to_be_sorted_by():
    unknown = replace(full(), cells=full().cells.assign(acceptance_rate=None, identical=None))
    table = page_tables(unknown)["speculation"]
    place = [column.key for column in table.columns].index("acceptance_rate")
    cell = table.rows[1][place]
    assert (cell.text, cell.key) == ("–", None)


def test_hardware_has_units_and_leaves_out_what_is_not_known():
    analysis = full()
    campaign = analysis.campaign.assign(
        host_gpu="GPU_1",
        host_gpu_memory_bytes=None,
        host_given="",
        host_memory_bandwidth_bytes_per_second=8e11,
    )
    shown = dict(texts("hardware", replace(analysis, campaign=campaign)))
    assert shown["Processor"] == "Processor & Sons"
    assert shown["Memory"] == "16.0GiB"
    assert shown["Engine commit"] == "0123456789ab"
    assert shown["GPU"] == "GPU_1"
    assert shown["Memory bandwidth"] == "800.0GB/s"
    assert {"GPU memory", "Stated by hand"}.isdisjoint(shown)


def test_two_suites_with_the_same_cell_are_told_apart():
    runs = baseline_runs(["moe_q4"], ["code"], 1)
    for suite, rate in [("B", 60), ("C", 70)]:
        runs += speculative_runs(suite, "moe_q4", "draft_2b", 4, [rate])
    names = [row[0] for row in texts("speculation", analysis_of(runs))]
    assert names == ["MoE Q4 (suite B)", "MoE Q4 (suite C)"]
