"""The table of passes that were timed by themselves."""

import json

import pandas as pd
import pytest

from specmoe.config.timed_passes import Outputs, TimedPasses
from specmoe.errors import SchemaError
from specmoe.runs.pass_times import (
    read_pass_times,
    rows_of_record,
    seen_experts,
    undisturbed_passes,
    write_pass_times,
)


def asked(model="moe"):
    """Return what is timed of a model."""
    return TimedPasses(
        model=model,
        widths=(5,),
        outputs=(Outputs.ALL,),
        samples=8,
        text="passage.txt",
        depth=128,
        threads=0,
        gpu_layers=0,
        environment={},
        gate={},
    )


def record(model="moe", repeat=0, experts=11.0, taken_away=None):
    """Return a record of one pass."""
    timing = {"outputs": "all", "width": 5, "ms": 2.5, "experts": experts}
    return {
        "engine": "current-cpu",
        "model_sha256": "0" * 64,
        "host": "abc",
        "repeat": repeat,
        "passes": json.loads(asked(model).to_json()),
        "timings": [timing],
        "taken_away": taken_away,
    }


@pytest.fixture
def table(tmp_path):
    """Write the table of records and read it back."""

    def make(*records):
        path = tmp_path / "pass_times.parquet"
        of_records = (rows_of_record(one, asked(one["passes"]["model"])) for one in records)
        write_pass_times([row for rows in of_records for row in rows], path)
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


@pytest.mark.parametrize("key", ["threads", "environment", "depth", "widths", "text"])
def test_passes_of_another_configuration_are_refused_by_what_differs(key):
    made = record()
    made["passes"][key] = None
    with pytest.raises(ValueError, match=f"another configuration: {key} is None, not "):
        rows_of_record(made, asked())
    made = record()
    del made["passes"]["gate"]  # those of before had none
    assert rows_of_record(made, asked())


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
