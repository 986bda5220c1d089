"""The record of the distilled draft adds up."""

import json

import pytest

from specmoe.files import sha256_of

from ..conftest import ROOT

FOLDER = ROOT / "resources/drafts"


@pytest.fixture(scope="module")
def record():
    return json.loads((FOLDER / "record.json").read_text())


def test_the_shipped_file_is_the_recorded_one_and_small(record):
    file = FOLDER / record["draft"]["file"]
    assert sha256_of(file) == record["draft"]["sha256"]
    assert file.stat().st_size == record["draft"]["bytes"] <= 30_000_000


def test_the_readme_has_the_record_s_figures(record):
    text = (FOLDER / "README.md").read_text()
    counts = record["acceptance"]["held out"]
    assert f"{counts['accepted'] / counts['drafted']:.1%}".replace("%", " %") in text
    assert f"{record['curve'][-1]['tokens']:,}".replace(",", " ") in text
