"""The table of what drafts would have proposed."""

import json

import pytest

from specmoe.errors import SchemaError
from specmoe.runs.agreement import collect_agreement, read_agreement

RECORD = {
    **{"draft": "d", "draft_sha256": "s", "engine": "e", "host": "h", "moved_nats": 0.1},
    "texts": [
        {
            **{"target": "t", "prompt": "code", "token": [7, 8], "agrees": [True, False]},
            **{"confidence": [0.9, 0.5], "lead_nats": [2.0, 1.4]},
        }
    ],
}


def collected(folder, **changed):
    """Collect one record into a table and return the table's file."""
    file = folder / "d.json"
    file.write_text(json.dumps(RECORD | {"texts": [RECORD["texts"][0] | changed]}))
    collect_agreement([file], folder / "agreement.parquet")
    return folder / "agreement.parquet"


def test_a_record_has_a_row_for_each_token_and_is_read_as_it_was_written(tmp_path):
    frame = read_agreement(collected(tmp_path))
    assert set(frame.columns) == set(read_agreement(None).columns)
    shown = frame[["text", "position", "token", "agrees", "lead_nats", "moved_nats"]]
    assert shown.to_numpy().tolist() == [[0, 0, 7, True, 2.0, 0.1], [0, 1, 8, False, 1.4, 0.1]]
    assert read_agreement(None).empty


def test_a_broken_record_or_file_is_refused(tmp_path):
    with pytest.raises(SchemaError, match="confidence"):
        collected(tmp_path, confidence=[0.9, 1.5])
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(SchemaError, match="is not a readable parquet file"):
        read_agreement(tmp_path / "no.parquet")
