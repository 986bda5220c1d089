"""A packed campaign is read only as it was packed."""

import pytest

from specmoe.errors import DamagedFileError
from specmoe.runs.manifest import NAME, check_manifest, write_manifest


@pytest.fixture
def packed(tmp_path):
    """A folder of two files with their manifest."""
    (tmp_path / "divergences").mkdir()
    for name in ("runs.parquet", "divergences/t.json"):
        (tmp_path / name).write_text(name)
    write_manifest(tmp_path)
    return tmp_path


def test_a_folder_as_it_was_packed_is_read(packed):
    check_manifest(packed / NAME)
    before = (packed / NAME).read_bytes()
    write_manifest(packed)
    assert (packed / NAME).read_bytes() == before


@pytest.mark.parametrize("name", ["runs.parquet", "divergences/t.json"])
def test_a_changed_and_a_missing_file_are_named(packed, name):
    (packed / name).write_text("other")
    with pytest.raises(DamagedFileError, match=f"{name} is not the file that manifest.json names"):
        check_manifest(packed / NAME)
    (packed / name).unlink()
    with pytest.raises(DamagedFileError, match=f"{name} is missing"):
        check_manifest(packed / NAME)


@pytest.mark.parametrize("text", ["", "[]", '{"runs.parquet": 1}'])
def test_a_damaged_manifest_is_named(packed, text):
    (packed / NAME).write_text(text)
    with pytest.raises(DamagedFileError, match=r"manifest\.json is no list of files"):
        check_manifest(packed / NAME)
