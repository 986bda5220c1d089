"""A shipped campaign is read only as it was packed; its columns become those of today."""

import shutil

import pyarrow.parquet as pq
import pytest

from specmoe.errors import DamagedFileError, SpecmoeError
from specmoe.runs.shipped import MANIFEST, check_manifest, upgrade, write_manifest

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


def test_a_folder_as_it_was_packed_is_read(packed):
    check_manifest(packed)
    before = (packed / MANIFEST).read_bytes()
    write_manifest(packed)
    assert (packed / MANIFEST).read_bytes() == before
    (packed / "my notes.txt").write_text("of nobody's concern")
    check_manifest(packed)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        *((name, "other", f"{name} is not the file that manifest.json names") for name in FILES),
        *((name, None, f"{name} is missing") for name in FILES),
        *((MANIFEST, text, "no list of files") for text in ("", "[]", '{"runs.parquet": 1}')),
        (MANIFEST, "{}", "is not among the files that manifest.json"),
        (MANIFEST, None, "cannot be checked"),
    ],
)
def test_a_changed_or_missing_file_or_manifest_is_named(packed, name, text, fault):
    (packed / name).unlink() if text is None else (packed / name).write_text(text)
    with pytest.raises(DamagedFileError, match=fault):
        check_manifest(packed)


def test_shipped_campaigns_are_as_they_were_packed():
    for file in ROOT.glob("resources/campaigns/*/manifest.json"):
        check_manifest(file.parent)


@pytest.fixture
def demo(tmp_path):
    """A copy of a shipped campaign."""
    return shutil.copytree(ROOT / "resources/campaigns/demo", tmp_path / "demo")


def test_an_upgrade_gives_a_campaign_of_2_0_0_the_columns_and_keys_of_today_and_says_so(
    demo, capsys
):
    file, settings = demo / "runs.parquet", demo / "campaign.yaml"
    table, text = pq.read_table(file), settings.read_text()
    pq.write_table(table.drop_columns("stop").append_column("gone", table["run"]), file)
    settings.write_text(text.replace('  "warmups"', '  "more_repeats": {},\n  "warmups"'))
    write_manifest(demo)
    for columns, keys in (
        ("without gone, with stop, empty", "without measurement.more_repeats"),
        ("of today, nothing to change",) * 2,
    ):
        upgrade(demo)
        assert capsys.readouterr().out == f"{file}: {columns}\n{settings}: {keys}\n"
        check_manifest(demo)
        assert settings.read_text() == text
        upgraded = pq.read_table(file)
        assert upgraded["stop"].null_count == len(table)
        assert upgraded.drop_columns("stop").equals(table.drop_columns("stop"))


def in_rows(change):
    """Give what changes the rows of a campaign, and mends its manifest."""

    def act(folder):
        pq.write_table(change(pq.read_table(folder / "runs.parquet")), folder / "runs.parquet")
        write_manifest(folder)

    return act


def with_unknown_key(folder):
    file = folder / "campaign.yaml"
    file.write_text(file.read_text().replace('"repeats"', '"repaets": 9, "repeats"'))
    write_manifest(folder)


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lambda folder: (folder / MANIFEST).unlink(), r"no file \S*demo/manifest\.json; correct"),
        (
            lambda folder: (folder / "trace.json").unlink(),
            "trace.json is missing, one that manifest",
        ),
        (with_unknown_key, "measurement: unknown key 'repaets'; did you mean 'repeats'"),
        (
            in_rows(lambda rows: rows.replace_schema_metadata({"specmoe_schema": "8"})),
            r"has schema version 8, .* the release that packed it \(8 and 9: 1\.1\.0\)",
        ),
        (in_rows(lambda rows: rows.drop_columns("order")), r"runs\.parquet: .*'order'"),
    ],
)
def test_an_upgrade_changes_nothing_of_a_campaign_that_it_refuses(demo, harm, fault):
    harm(demo)
    before = {file: file.read_bytes() for file in demo.rglob("*.*")}
    with pytest.raises(SpecmoeError, match=fault):
        upgrade(demo)
    assert {file: file.read_bytes() for file in demo.rglob("*.*")} == before
