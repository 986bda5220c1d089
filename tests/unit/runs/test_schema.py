"""runs.parquet is checked when it is written and read; disturbed runs are in no estimate."""

import pandas as pd
import pyarrow.parquet as pq
import pytest

from specmoe.errors import SchemaError
from specmoe.runs.collect import rows_of_record
from specmoe.runs.schema import (
    COLUMNS,
    disturbed_beyond_usual,
    excluded,
    read_runs,
    undisturbed,
    write_runs,
)

from ...blocks import MADE_BY
from ...made_record import made_record, small_block


@pytest.fixture
def rows(study):
    block = small_block(study)
    return rows_of_record(made_record(block), block, MADE_BY)


def test_written_rows_are_read_back(rows, tmp_path):
    for name in ("runs", "again"):
        write_runs(rows, tmp_path / f"{name}.parquet")
    assert (tmp_path / "runs.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    assert pq.read_schema(tmp_path / "runs.parquet").field("gamma").metadata == {
        b"about": b"The most tokens that it drafts in a round."
    }
    frame = read_runs(tmp_path / "runs.parquet")
    assert frame["run"].tolist() == [row["run"] for row in rows]
    assert [list(tokens) for tokens in frame["tokens"]] == [[*range(16)]] * 4
    assert frame["rounds"].isna().tolist() == [row["rounds"] is None for row in rows]
    assert frame["generated"].tolist() == [16] * 4


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tokens_per_second", -1.0),
        ("decode_ms", float("nan")),
        ("protocol", "good"),
        ("iteration", -1),
        ("gamma", 1025),
        ("gamma", None),
        ("accepted_per_position", [2, 1, 1, -1]),
        ("accepted_per_position", [4]),
        ("tokens", None),
        ("tokens", [None]),
        ("baseline", "another"),
    ],
)
def test_a_value_that_breaks_the_schema_is_refused_and_nothing_written(
    rows, tmp_path, column, value
):
    changed = [row | {column: value} for row in rows]
    with pytest.raises(SchemaError, match=column):
        write_runs(changed, tmp_path / "runs.parquet")
    assert not (tmp_path / "runs.parquet").exists()


def test_a_repeated_run_and_a_row_that_lacks_what_is_never_null_are_refused(rows, tmp_path):
    with pytest.raises(SchemaError, match="not unique"):
        write_runs([rows[0], rows[0]], tmp_path / "runs.parquet")
    del rows[1]["backend"]
    with pytest.raises(SchemaError, match="'backend'"):
        write_runs(rows, tmp_path / "runs.parquet")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda table: table.drop_columns("order"), "it has no column 'order'"),
        (lambda table: table.set_column(0, "campaign", table["gamma"]), "arrow_string, got int64"),
        (
            lambda table: table.replace_schema_metadata({"specmoe_schema": "0"}),
            "has schema version 0, this specmoe reads 10; .* the release that packed it",
        ),
    ],
)
def test_a_file_of_another_schema_is_refused_with_what_differs(rows, tmp_path, change, fault):
    path = tmp_path / "runs.parquet"
    write_runs(rows, path)
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(SchemaError, match=fault):
        read_runs(path)


def test_a_column_that_nobody_reads_is_excluded(rows, tmp_path):
    path = tmp_path / "runs.parquet"
    write_runs(rows, path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("gone", table["gamma"]), path)
    assert list(read_runs(path)) == list(COLUMNS)


def runs_of(**columns):
    """Return runs that were disturbed at their last attempt, of which something is known."""
    names = ["baseline", "steal_share", "wait_share", "others_share"]
    frame = pd.DataFrame({"machine": "m", "disturbed_reason": "why"} | columns)
    other = dict.fromkeys([*names, "gpu_throttled", "thermal_pressure"])
    return frame.assign(**{name: value for name, value in other.items() if name not in columns})


RUNS = runs_of(
    run=["quiet", "busy", "a4", "a8", "b4", "b8", "c4"],
    baseline=[None, None, "quiet", "quiet", "busy", "busy", "quiet"],
    wait_share=[0.04, 0.4, 0.06, 0.4, 0.04, 0.04, 0.04],
)


def test_a_disturbed_run_leaves_and_a_disturbed_baseline_takes_its_pairs_along():
    assert undisturbed(RUNS)["run"].tolist() == ["quiet", "a4", "c4"]
    assert excluded(RUNS)["run"].tolist() == ["busy", "a8", "b4", "b8"]
    assert undisturbed(undisturbed(RUNS)).equals(undisturbed(RUNS))


@pytest.mark.parametrize(
    ("columns", "beyond"),
    [
        ({"wait_share": [0.04, 0.04, 0.04, 0.04, 0.4]}, True),
        ({"wait_share": [0.04, 0.04, 0.04, 0.04, 0.08]}, False),  # disturbed, and little more
        ({"wait_share": [0.4, 0.4, 0.1, 0.4, 0.4]}, False),  # usual here
        ({"wait_share": [0.4, 0.4, 0.04, 0.04, 0.4], "machine": [*"aabbb"]}, True),  # not on b
        ({"steal_share": [0.0, 0.0, 0.0, 0.0, 0.06], "wait_share": 0.04}, True),
        ({"others_share": [0.0, 0.0, 0.0, 0.0, 0.3]}, True),
        ({"others_share": [0.0, 0.0, 0.0, 0.0, 0.3], "wait_share": 0.04}, False),  # it waited not
        ({"gpu_throttled": [False, False, None, False, True]}, True),
        ({"gpu_throttled": [True, True, None, False, True]}, False),
        ({"thermal_pressure": ["nominal", "moderate", None, "nominal", "heavy"]}, True),
        ({"thermal_pressure": ["heavy", "heavy", "nominal", "trapping", "heavy"]}, False),
        ({"wait_share": [0.04, 0.04, 0.04, 0.04, 0.4], "disturbed_reason": None}, False),
    ],
)
def test_a_run_is_disturbed_beyond_what_is_usual_on_its_machine(columns, beyond):
    assert disturbed_beyond_usual(runs_of(run=[*"12345"], **columns)).tolist()[-1] == beyond
