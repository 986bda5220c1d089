"""A shipped campaign is read only as it was packed; names of the version before become today's."""

import json

import pyarrow.parquet as pq
import pytest

from specmoe.errors import DamagedFileError
from specmoe.runs.collect import rows_of_record
from specmoe.runs.schema import read_runs, write_runs
from specmoe.runs.shipped import (
    COLUMNS,
    NAME,
    SCHEMA,
    VALUES,
    check_manifest,
    upgrade,
    write_manifest,
)

from ...conftest import ROOT
from ...made_record import MADE_BY, made_record, small_block

FILES = ("runs.parquet", "divergences/t.json")


@pytest.fixture
def packed(tmp_path):
    """A folder of two files with their manifest."""
    (tmp_path / "divergences").mkdir()
    for name in FILES:
        (tmp_path / name).write_text(name)
    write_manifest(tmp_path)
    return tmp_path


def refused(folder, fault):
    """Check that a campaign is refused for a fault."""
    with pytest.raises(DamagedFileError, match=fault):
        check_manifest(folder)


def test_a_folder_as_it_was_packed_is_read(packed):
    check_manifest(packed)
    before = (packed / NAME).read_bytes()
    write_manifest(packed)
    assert (packed / NAME).read_bytes() == before
    (packed / "my notes.txt").write_text("of nobody's concern")
    check_manifest(packed)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_and_a_missing_file_are_named(packed, name):
    (packed / name).write_text("other")
    refused(packed, f"{name} is not the file that manifest.json names")
    (packed / name).unlink()
    refused(packed, f"{name} is missing")


@pytest.mark.parametrize("text", ["", "[]", '{"runs.parquet": 1}'])
def test_a_damaged_manifest_is_named(packed, text):
    (packed / NAME).write_text(text)
    refused(packed, r"manifest\.json is no list of files")


def test_a_missing_manifest_and_one_that_leaves_out_a_file_are_refused(packed):
    (packed / NAME).write_text("{}")
    refused(packed, "is not among the files that manifest.json")
    (packed / NAME).unlink()
    refused(packed, "cannot be checked")


def test_shipped_campaigns_are_as_they_were_packed():
    for file in ROOT.glob("resources/campaigns/*/manifest.json"):
        check_manifest(file.parent)


FORMER = {
    "host": {"chip": "c"},
    "campaign": {"name": "old", "hosts": "any", "models": "s", "compare_with_study": True},
    "model_sets": {"s": {"moe_q4": {}, "own": {}}},
    "measurement": {"sides": "in_turn", "passes": 2},
    "statistics": {"precision": 0.1, "repeats_limit": 9},
    "suites": {"K": {"drafts": ["itself", "draft_0.8b"]}},
    "prompts": {"texts": {"a.b": {"file": "x"}}},
}
TODAY = {
    "machine": {"chip": "c"},
    "campaign": {
        **{"name": "old", "machines": "any", "models": "s"},
        "compare_with_study": {"moe_q4": "moe_q4"},
    },
    "model_sets": {"s": {"moe_q4": {}, "own": {}}},
    "measurement": {"schedule": "sequential", "prompt_iterations": 2},
    "statistics": {},
    "suites": {"K": {"drafts": ["self", "draft_0.8b"]}},
    "prompts": {"texts": {"a.b": {"file": "x"}}},
}


@pytest.fixture
def rows(study):
    block = small_block(study)
    return rows_of_record(made_record(block), block, MADE_BY)


def former_names(rows):
    """Return rows with the names of columns, values and ids that the version before gave them."""
    names = {new: old for old, new in COLUMNS.items()}
    values = {new: old for old, new in VALUES["schedule"].items()}
    old = [{names.get(key, key): value for key, value in row.items()} for row in rows]
    for row in old:
        row["arrangement"] = values[row["arrangement"]]
        for key in ("run", "baseline"):
            row[key] = row[key] and row[key].replace("/baseline/", "/alone/")
    return old


@pytest.fixture
def folder(rows, tmp_path):
    """A shipped campaign of the version before."""
    (tmp_path / "campaign.yaml").write_text(f"{SCHEMA}\n{json.dumps(FORMER)}\n")
    write_runs(rows, tmp_path / "runs.parquet")
    today = pq.read_table(tmp_path / "runs.parquet")
    former = today.from_pylist(former_names(rows)).replace_schema_metadata(today.schema.metadata)
    pq.write_table(former, tmp_path / "runs.parquet")
    (tmp_path / "host.json").write_text("{}")
    (tmp_path / "divergences").mkdir()
    divergence = {"run": "B/alone/p", "gap_nats_by_width": {"2": 0.5}}
    (tmp_path / "divergences/t.json").write_text(json.dumps({"divergences": [divergence]}))
    return tmp_path


def test_a_shipped_campaign_has_todays_names_and_the_same_numbers(folder, rows):
    for _ in range(2):  # a second time changes nothing
        upgrade(folder)
        check_manifest(folder)
        assert json.loads((folder / "campaign.yaml").read_text().partition("\n")[2]) == TODAY
        write_runs(rows, folder / "today.parquet")
        today = read_runs(folder / "today.parquet")
        assert read_runs(folder / "runs.parquet").equals(today)
        [judged] = json.loads((folder / "divergences/t.json").read_text())["divergences"]
        assert judged == {"run": "B/baseline/p", "gap_nats_by_batch": {"2": 0.5}}
        assert (folder / "machine.json").exists()
