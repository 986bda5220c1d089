"""A campaign's speculation profile, and what pairs gain with profiles of others, by hand."""

import json
import math

import pandas as pd
import pytest

from specmoe.analysis.compared_cells import gains_by_profile
from specmoe.analysis.profile import speculation_profile
from specmoe.analysis.summaries import summarise_cells, with_speedups
from specmoe.config.profiles import FORMAT, read_rates
from specmoe.config.schema import Statistics

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


def imposed(*speedups, own):
    """Return what a pair gains with a profile, by block, and with its own drafts."""
    rows = []
    for repeat, speedup in enumerate(speedups):
        for suite, gain, more in (
            ("I", speedup, {"imposed_profile": "theirs", "imposed_acceptance": 0.475}),
            ("B", own, {"imposed_profile": None, "imposed_acceptance": None}),
        ):
            common = {"suite": suite, "repeat": repeat, "block": f"{suite}{repeat}"}
            alone = f"{suite}a{repeat}"
            drafted = {"draft": "d", "gamma": 4, "baseline": alone}
            rows += [
                run(alone, 10.0, **common) | {"imposed_profile": None},
                run(f"{suite}s{repeat}", 10.0 * gain, **common, **drafted) | more,
            ]
    compared = with_speedups(pd.DataFrame(rows))
    cells = summarise_cells(compared[compared["suite"] == "B"], Statistics())
    return compared, cells


def test_the_speedup_under_a_profile_stands_beside_the_models_and_the_pairs_own():
    compared, cells = imposed(1.2, 1.2, own=1.5)
    predicted = cells[["suite", "target", "draft", "gamma"]].assign(
        suite="I", imposed_acceptance=0.475, predicted=1.25
    )
    [row] = gains_by_profile(compared, cells, predicted, Statistics()).to_dict("records")
    assert (row["profile"], row["suite"], row["own_suite"]) == ("theirs", "I", "B")
    assert (row["runs"], row["blocks"]) == (2, 2)
    assert row["speedup"] == pytest.approx(1.2)
    assert row["predicted"] == 1.25
    assert row["own_speedup"] == pytest.approx(1.5)
    assert row["ratio"] == pytest.approx(0.8)


def test_without_a_model_or_drafts_of_its_own_those_are_null():
    compared, cells = imposed(1.2, own=1.5)
    empty = cells.iloc[:0]
    [row] = gains_by_profile(compared, empty, pd.DataFrame(), Statistics()).to_dict("records")
    assert math.isnan(row["predicted"])
    assert math.isnan(row["ratio"])
    none = compared[compared["imposed_profile"].isna()]
    assert gains_by_profile(none, cells, pd.DataFrame(), Statistics()).empty
