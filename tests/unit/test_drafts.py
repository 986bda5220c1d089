"""The record of the distilled draft adds up."""

import json
from itertools import pairwise

import pytest

from specmoe.files import sha256_of

from ..conftest import ROOT

FOLDER = ROOT / "resources/drafts"
GAMMA = 4


@pytest.fixture(scope="module")
def record():
    return json.loads((FOLDER / "record.json").read_text())


def test_the_shipped_file_is_the_recorded_one_and_small(record):
    file = FOLDER / record["draft"]["file"]
    assert sha256_of(file) == record["draft"]["sha256"]
    assert file.stat().st_size == record["draft"]["bytes"] <= 30_000_000


def test_the_curve_goes_on_and_has_shares(record):
    curve = record["curve"]
    for earlier, later in pairwise(curve):
        assert earlier["tokens"] < later["tokens"]
        assert earlier["hours"] <= later["hours"]
    assert all(0 <= line["acceptance"] <= line["agreement"] <= 1 for line in curve)


def test_the_counts_of_the_engine_add_up(record):
    for counts in record["acceptance"].values():
        places = [counts[f"accepted_at_{place + 1}"] for place in range(GAMMA)]
        assert counts["accepted"] == sum(places) <= counts["drafted"]
        assert places == sorted(places, reverse=True)
        assert places[0] <= counts["rounds"]
        assert counts["drafted"] <= GAMMA * counts["rounds"]
        # Each chat's first token comes with its prompt, and each round adds one of the target's.
        assert counts["accepted"] + counts["rounds"] <= counts["tokens"] + GAMMA * counts["chats"]


def test_the_readme_has_the_record_s_figures(record):
    text = (FOLDER / "README.md").read_text()
    counts = record["acceptance"]["held out"]
    assert f"{counts['accepted'] / counts['drafted']:.1%}".replace("%", " %") in text
    assert f"{record['curve'][-1]['tokens']:,}".replace(",", " ") in text
