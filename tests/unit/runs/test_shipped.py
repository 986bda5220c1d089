"""A shipped campaign is read only as it was packed; its keys and columns become those of today."""

import json

import pyarrow.parquet as pq
import pytest

from specmoe.errors import DamagedFileError
from specmoe.runs.schema import write_runs
from specmoe.runs.shipped import (
    NAME,
    SCHEMA,
    check_manifest,
    upgrade,
    write_manifest,
)

from ...conftest import ROOT
from ...made_record import made_rows

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
    "campaign": {"name": "old", "hosts": "same"},
    "model_sets": {"s": {"own": {"kind": "path", "path": "x.gguf", "size_gb": 1.5}}},
    "measurement": {"passes": 2, "start_limit_s": 60},
}
TODAY = {
    "machine": {"chip": "c"},
    "campaign": {"name": "old", "machines": "same"},
    "model_sets": {"s": {"own": {"kind": "path", "path": "x.gguf"}}},
    "measurement": {"prompt_iterations": 2, "time_limit_s": 60},
}


@pytest.fixture
def rows(study):
    return made_rows(study)


def test_a_shipped_campaign_has_todays_keys_and_columns_and_the_same_numbers(rows, tmp_path):
    (tmp_path / "campaign.yaml").write_text(f"{SCHEMA}\n{json.dumps(FORMER)}\n")
    write_runs(rows, tmp_path / "runs.parquet")
    table = pq.read_table(tmp_path / "runs.parquet")
    pq.write_table(table.append_column("gone", table["run"]), tmp_path / "runs.parquet")
    for _ in range(2):  # a second time changes nothing
        upgrade(tmp_path)
        check_manifest(tmp_path)
        assert json.loads((tmp_path / "campaign.yaml").read_text().partition("\n")[2]) == TODAY
        assert pq.read_table(tmp_path / "runs.parquet").equals(table)
