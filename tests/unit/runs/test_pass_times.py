"""The table of passes that were timed by themselves."""

import pandas as pd
import pytest

from specmoe.errors import SchemaError
from specmoe.runs.pass_times import (
    read_pass_times,
    rows_of_record,
    seen_experts,
    undisturbed_passes,
    write_pass_times,
)


def record(model="moe", repeat=0, experts=11.0, taken_away=None):
    """Return what one pass was asked, and its record."""
    asked = {"engine": "current-cpu", "target_sha256": "0" * 64, "model": model, "repeat": repeat}
    timing = {"outputs": "all", "width": 5, "ms": 2.5, "experts": experts}
    measured = {"host": "abc", "timings": [timing], "taken_away": taken_away}
    return measured, asked | {"samples": 8, "depth": 128}


@pytest.fixture
def table(tmp_path):
    """Write the table of records and read it back."""

    def make(*records):
        path = tmp_path / "pass_times.parquet"
        write_pass_times([row for one in records for row in rows_of_record(*one)], path)
        return read_pass_times(path)

    return make


def test_a_table_is_read_as_it_was_written(table):
    read = table(record(), record("dense", experts=None))
    assert read["experts"].isna().tolist() == [False, True]
    assert read.loc[0, "ms"] == 2.5


def test_a_campaign_without_passes_has_an_empty_table_of_the_same_columns(table):
    empty = read_pass_times(None)
    assert empty.empty
    assert list(empty) == list(table(record()))
    assert seen_experts(empty) == {}


def test_passes_beside_other_work_are_kept_and_in_no_estimate(table):
    read = table(record(), record(repeat=1, taken_away="other processes used 40.0% of the CPUs"))
    assert read["repeat"].tolist() == [0, 1]
    assert undisturbed_passes(read)["repeat"].tolist() == [0]
    older = read.drop(columns="taken_away")
    assert undisturbed_passes(older)["repeat"].tolist() == [0, 1]


def test_experts_are_means_over_repeats_and_dense_models_have_none(table):
    read = table(record(), record(repeat=1, experts=12.0), record("dense", experts=None))
    assert seen_experts(read) == {"moe": ((5, 11.5),)}


@pytest.mark.parametrize(
    "records, fault",
    [([record(), record()], "not unique"), ([record(experts=-1.0)], "experts")],
)
def test_a_broken_table_is_refused(table, records, fault):
    with pytest.raises(SchemaError, match=fault):
        table(*records)


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    path = tmp_path / "pass_times.parquet"
    path.write_text("not a table")
    with pytest.raises(SchemaError, match="not a readable parquet file"):
        read_pass_times(path)
    pd.DataFrame({"width": [1]}).to_parquet(path)
    with pytest.raises(SchemaError):
        read_pass_times(path)
