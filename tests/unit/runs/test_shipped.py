"""A shipped campaign is read only as it was packed, that of 2.0.0 too."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from specmoe.campaign.gate import load_campaign
from specmoe.config.load import merge_catalogs
from specmoe.errors import ConfigError, DamagedFileError
from specmoe.runs.schema import ADDED, COLUMNS, read_runs
from specmoe.runs.shipped import MANIFEST, check_manifest, write_manifest
from specmoe.yaml_files import read_mapping

from ...conftest import ROOT, shipped

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


def test_a_campaign_that_2_0_0_packed_is_read_as_it_is(tmp_path):
    packed = shutil.copytree(ROOT / "resources/campaigns/demo", tmp_path / "demo")
    file, settings = packed / "runs.parquet", packed / "campaign.yaml"
    table, config = pq.read_table(file), read_mapping(settings)
    former = {"prompt_iterations": 1, "schedule": "auto", "more_repeats": {}, "drop_beaten": None}
    config["measurement"] |= former
    config["statistics"]["session_sd"] = 0.03
    older = table.select([name for name in table.column_names if name not in ADDED])
    pq.write_table(older.append_column("gone", table["run"]), file)
    settings.write_text(json.dumps(config))
    write_manifest(packed)
    data = merge_catalogs(ROOT, read_mapping(settings))
    campaign = load_campaign(data, ROOT, tmp_path / "results", [settings])
    today = shipped("demo", tmp_path / "results")
    assert campaign.config.measurement == today.config.measurement
    assert campaign.config.statistics.session_sd is None
    check_manifest(campaign.places.data)
    rows = read_runs(campaign.places.data / "runs.parquet")
    assert [*rows.columns] == [*COLUMNS]
    assert rows[[*ADDED]].isna().all(axis=None)
    # What somebody asked for on purpose is no such thing, nor is what is measured.
    config["measurement"]["prompt_iterations"] = 2
    for asked in (config, config | {"campaign": config["campaign"] | {"source": "measured"}}):
        with pytest.raises(
            ConfigError, match="unknown key 'prompt_iterations'; it is `repeats` now"
        ):
            load_campaign(merge_catalogs(ROOT, asked), ROOT, tmp_path / "results", [settings])
