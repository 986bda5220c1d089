"""Profiles that a suite imposes: read from files or given by hand, and checked."""

import json

import pytest

from specmoe.config.block import Side
from specmoe.config.profiles import FORMAT
from specmoe.errors import ConfigError

RATES = [0.8, 0.5, 0.5, 0.1]
BY_HAND = {"name": "mine", "rates": RATES}


@pytest.fixture
def profile(tmp_path):
    """Write a profile of one setting; returns how a suite names it."""

    def write(joint=RATES, **more):
        file = tmp_path / "speculation_profile.json"
        settings = [{"setting": "B/t/d/g4", "joint": joint, "rounds": 9}]
        file.write_text(
            json.dumps({"format": FORMAT, "campaign": "c", "settings": settings} | more)
        )
        return {"name": "theirs", "file": str(file), "setting": "B/t/d/g4"}

    return write


@pytest.fixture
def sides(first):
    """Return the sides of a suite that imposes profiles."""

    def of(*profiles, **suite):
        [block] = first(gammas=[2, 4], imposed_profiles=[*profiles], **suite)
        return block.sides

    return of


def test_each_profile_is_a_side_of_every_gamma_with_as_many_rates(sides):
    alone, short, long = sides(BY_HAND)
    assert alone == Side()
    assert (short.imposed_rates, long.imposed_rates) == ((0.8, 0.5), tuple(RATES))
    assert (short.imposed_acceptance, long.imposed_acceptance) == (0.65, 0.475)
    names = [side.name for side in sides(BY_HAND, imposed_acceptance=[0, 1])]
    shares = ["g2-a0", "g2-a1", "g4-a0", "g4-a1"]
    assert names == ["alone", *shares, "g2-a_mine", "g4-a_mine"]


def test_a_file_gives_the_rates_of_the_setting_that_is_named(sides, profile):
    assert sides(profile())[2].imposed_rates == tuple(RATES)
    assert sides(profile() | {"rates": RATES})[2].imposed_rates == tuple(RATES)
    with pytest.raises(ConfigError, match="its `rates` are not those of"):
        sides(profile() | {"rates": [0.9, 0.5, 0.5, 0.1]})


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"joint": [0.5, 0.6, 0, 0]}, "speculation_profile.json: .*joint: the rate at position 2"),
        ({"joint": []}, "joint: List should have at least 1 item"),
        ({"format": "speculation_profile/9"}, "has format 'speculation_profile/9', not"),
        ({"settings": []}, "has no setting 'B/t/d/g4'"),
    ],
)
def test_a_broken_file_is_refused(sides, profile, more, fault):
    with pytest.raises(ConfigError, match=fault):
        sides(profile(**more))
