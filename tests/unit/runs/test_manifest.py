"""A packed campaign is read only as it was packed."""

import json
import shutil

import pytest

from specmoe.errors import DamagedFileError
from specmoe.runs.manifest import NAME, check_manifest, write_manifest

from ...conftest import ROOT

CAMPAIGNS = sorted(path.parent for path in ROOT.glob("resources/campaigns/*/runs.parquet"))
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


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_the_manifest_leaves_out_is_named(packed, name):
    left = json.loads((packed / NAME).read_text())
    del left[name]
    (packed / NAME).write_text(json.dumps(left))
    refused(packed, f"{name} is not among the files that manifest.json")


@pytest.mark.parametrize("text", ["", "[]", '{"runs.parquet": 1}'])
def test_a_damaged_manifest_is_named(packed, text):
    (packed / NAME).write_text(text)
    refused(packed, r"manifest\.json is no list of files")


def test_a_missing_and_an_empty_manifest_are_refused(packed):
    (packed / NAME).write_text("{}")
    refused(packed, "is not among the files that")
    (packed / NAME).unlink()
    refused(packed, "nothing says that the campaign's are those that")


@pytest.mark.parametrize("folder", CAMPAIGNS, ids=lambda folder: folder.name)
def test_a_shipped_campaign_is_as_it_was_packed(folder, tmp_path):
    check_manifest(folder)
    copy = shutil.copytree(folder, tmp_path / folder.name)
    write_manifest(copy)
    assert (copy / NAME).read_bytes() == (folder / NAME).read_bytes()
