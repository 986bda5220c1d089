"""The tables of timed passes, and of what drafts would have proposed."""

import json

import pandas as pd
import pytest

from specmoe.errors import SchemaError
from specmoe.runs.other_tables import (
    PASS_TIMES,
    read_agreement,
    read_pass_times,
    read_scores,
    rows_of_passes,
    sizes_of,
    table_of,
    undisturbed_passes,
)

from ...recipes import made_info


def passes(model="moe", repeat=0, experts=11.0, disturbed_reason=None):
    """Return what one pass was asked, and its record."""
    asked = {"engine": "current-cpu", "target_sha256": "0" * 64, "model": model, "repeat": repeat}
    timing = {"outputs": "all", "n_tokens": 5, "ms": 2.5, "first_ms": 3.5, "experts": experts}
    timing |= {"samples": 8, "layers": experts and [experts - 1, experts + 1]}
    beside = {"sampled_ms": 0.1, "saved_ms": None, "restored_ms": None, "error": 0.05}
    measured = {"machine": "abc", "timings": [timing], "disturbed_reason": disturbed_reason}
    return measured | beside, asked | {"depth": 128}


@pytest.fixture
def table(tmp_path):
    """Write the table of records of passes and read it back."""

    def make(*records):
        path = tmp_path / "pass_times.parquet"
        rows = [row for one in records for row in rows_of_passes(*one)]
        table_of(PASS_TIMES, rows).to_parquet(path, index=False)
        return read_pass_times(path)

    return make


def test_passes_beside_other_work_are_kept_and_in_no_estimate(table):
    read = table(
        passes(), passes(repeat=1, disturbed_reason="other processes used 40.0% of the CPUs")
    )
    assert read["repeat"].tolist() == [0, 1]
    assert undisturbed_passes(read)["repeat"].tolist() == [0]


def test_experts_are_means_over_repeats_and_dense_models_have_none(table):
    read = table(passes(), passes(repeat=1, experts=12.0), passes("dense", experts=None))
    sizes = sizes_of(dict.fromkeys(["moe", "dense"], made_info()), read)
    assert [sizes[name].seen_experts for name in ("moe", "dense")] == [((5, 11.5),), ()]
    assert read["experts"].isna().tolist() == [False, False, True]
    assert [*read.loc[0, "layers"]] == [10.0, 12.0]
    assert read.loc[2, "layers"] is None
    beside = ["ms", "first_ms", "sampled_ms"]
    assert read.loc[0, beside].tolist() == [2.5, 3.5, 0.1]


def test_a_table_of_version_2_has_neither_first_passes_nor_what_is_beside(table, tmp_path):
    whole, path = table(passes()), tmp_path / "older.parquet"
    new = ["first_ms", "error", "sampled_ms", "saved_ms", "restored_ms", "layers"]
    whole.drop(columns=new).to_parquet(path)
    read = read_pass_times(path)
    assert [*read.columns] == [*whole.columns]
    assert read[new].isna().all(axis=None)
    assert read["ms"].tolist() == [2.5]


@pytest.mark.parametrize(
    "records, fault",
    [([passes(), passes()], "not unique"), ([passes(experts=-1.0)], "experts")],
)
def test_broken_passes_are_refused(table, records, fault):
    with pytest.raises(ValueError, match=fault):
        table(*records)


RECORD = {
    **{"draft": "d", "draft_sha256": "s", "engine": "e", "machine": "h", "moved_nats": 0.1},
    "texts": [
        {
            **{"target": "t", "prompt": "code", "token": [7, 8], "agrees": [True, False]},
            **{"confidence": [0.9, 0.5], "lead_nats": [2.0, 1.4]},
        }
    ],
}


def test_a_draft_has_a_row_for_each_token_and_is_read_as_it_was_written(tmp_path):
    (tmp_path / "d.json").write_text(json.dumps(RECORD))
    read_scores([tmp_path / "d.json"]).to_parquet(tmp_path / "agreement.parquet")
    frame = read_agreement(tmp_path / "agreement.parquet")
    assert set(frame.columns) == set(read_agreement(None).columns)
    shown = frame[["text", "position", "token", "agrees", "lead_nats", "moved_nats"]]
    assert shown.to_numpy().tolist() == [[0, 0, 7, True, 2.0, 0.1], [0, 1, 8, False, 1.4, 0.1]]
    assert read_agreement(None).empty


@pytest.mark.parametrize("read", [read_pass_times, read_agreement])
def test_a_file_that_is_no_parquet_or_lacks_columns_is_named(read, tmp_path):
    path = tmp_path / "table.parquet"
    path.write_text("not a table")
    with pytest.raises(SchemaError, match=r"table\.parquet is not a readable parquet file"):
        read(path)
    pd.DataFrame({"n_tokens": [1]}).to_parquet(path)
    with pytest.raises(SchemaError, match=r"table\.parquet: "):
        read(path)
