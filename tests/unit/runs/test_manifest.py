"""A packed campaign is read only as it was packed."""

import shutil

import pytest

from specmoe.errors import DamagedFileError
from specmoe.runs.manifest import NAME, check_manifest, write_manifest

from ...conftest import ROOT

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


def test_shipped_campaigns_are_as_they_were_packed(tmp_path):
    for file in ROOT.glob("resources/campaigns/*/runs.parquet"):
        check_manifest(file.parent)
        copy = shutil.copytree(file.parent, tmp_path / file.parent.name)
        write_manifest(copy)
        assert (copy / NAME).read_bytes() == (file.parent / NAME).read_bytes()
