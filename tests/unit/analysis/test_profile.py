"""A campaign's speculation profile."""

import json

import pandas as pd
import pytest

from specmoe.analysis.profile import speculation_profile
from specmoe.config.profiles import FORMAT, read_rates

from .test_summaries import run

# Ten rounds: all drafted four tokens, and accepted 0, 1, 2 or 4 of them.
LOGGED = {
    "tried_per_position": [10, 8, 5, 2],
    "accepted_per_position": [8, 5, 2, 2],
    "accepted_lengths": [2, 3, 3, 0, 2],
    "target_sha256": "t",
    "draft_sha256": "d",
    "category": None,
}
NAMES = {"suite": "B", "target": "t", "draft": "d", "gamma": 4, "method": "draft-simple"}


def logged(name, **more):
    return run(name, 10.0, **NAMES) | {"temperature": 0.0, "draft_model": "d"} | LOGGED | more


def profile_of(*rows):
    return speculation_profile(pd.DataFrame(rows), {"campaign": "c"})


def test_a_profile_has_conditional_and_joint_acceptance_by_position():
    profile = profile_of(logged("one"), logged("two"))
    assert (profile["format"], profile["campaign"]) == (FORMAT, "c")
    [setting] = profile["settings"]
    assert setting["setting"] == "B/t/d/g4"
    assert setting["conditional"] == [0.8, 0.625, 0.4, 1.0]
    assert setting["joint"] == [0.8, 0.5, 0.2, 0.2]
    assert (setting["rounds"], setting["mean_accepted_length"]) == (20, 2.7)
    assert setting["accepted_lengths"] == [4, 6, 6, 0, 4]


def test_what_follows_a_position_never_accepted_is_never_accepted():
    none = {"tried_per_position": [9, 0], "accepted_per_position": [0, 0]}
    [setting] = profile_of(logged("one", **none, accepted_lengths=[9, 0, 0]))["settings"]
    assert setting["joint"] == [0, 0]
    # Drafts that were never so long leave it open.
    short = {"tried_per_position": [9, 0], "accepted_per_position": [6, 0]}
    [setting] = profile_of(logged("one", **short, accepted_lengths=[3, 6, 0]))["settings"]
    assert setting["joint"] == [pytest.approx(2 / 3, abs=1e-6)]


def test_a_category_is_a_setting_of_its_own():
    rows = [logged(name, category=name) for name in ("code", "poems")]
    names = [setting["setting"] for setting in profile_of(*rows)["settings"]]
    assert names == ["B/t/d/g4", "B/t/d/g4/code", "B/t/d/g4/poems"]


def test_settings_without_a_draft_or_a_log_are_left_out():
    silent = logged("one") | dict.fromkeys(["tried_per_position", "accepted_lengths"])
    assert profile_of(silent, logged("two", draft="none"))["settings"] == []


def test_what_is_written_can_be_read_and_imposed(tmp_path):
    file = tmp_path / "speculation_profile.json"
    file.write_text(json.dumps(profile_of(logged("one"))))
    assert read_rates(file, "B/t/d/g4", "here") == [0.8, 0.5, 0.2, 0.2]
