"""Which prompts answer where the audit marks some pairs: planted cases."""

import pandas as pd

from specmoe.analysis.sound_prompts import MOST_MARKED, sound_prompts

PROMPTS = [f"p{number}" for number in range(8)]


def setting(*marked, impossible=()):
    """Return a setting's pairs, two repeats of each prompt; those of named ones are marked."""
    return pd.DataFrame(
        [
            {
                "prompt": prompt,
                "repeat": repeat,
                "marked": prompt in (*marked, *impossible),
                "impossible": repeat == 0 and prompt in impossible,
            }
            for prompt in PROMPTS
            for repeat in range(2)
        ]
    )


def test_an_odd_prompt_leaves_all_settings():
    found = sound_prompts({4: setting("p1"), 8: setting()}, {})
    assert found == ({"p1"}, frozenset())


def test_a_prompt_with_a_pair_left_stays():
    once = setting("p1")
    once["marked"] &= once["repeat"] == 0
    assert sound_prompts({4: once, 8: setting()}, {}) == (frozenset(), frozenset())


def test_a_setting_with_an_impossible_row_is_set_aside_whole_and_takes_no_prompt_from_others():
    found = sound_prompts({4: setting(impossible=["p1"]), 8: setting("p2")}, {})
    assert found == ({"p2"}, {4})


def test_a_setting_with_too_many_odd_prompts_is_set_aside():
    most = int(MOST_MARKED * len(PROMPTS))
    enough, too_many = PROMPTS[:most], PROMPTS[: most + 1]
    assert sound_prompts({4: setting(*enough)}, {}) == (set(enough), frozenset())
    assert sound_prompts({4: setting(*too_many)}, {}) == (frozenset(), {4})


def test_settings_with_fewer_odd_prompts_come_first_whatever_their_order():
    many, few, other = setting("p1", "p2"), setting("p3"), setting("p4")
    for order in ([8, 4, 2], [2, 4, 8]):
        cells = {key: {8: many, 4: few, 2: other}[key] for key in order}
        assert sound_prompts(cells, {}) == ({"p3", "p4"}, {8})


def test_a_prompt_of_which_the_machine_left_no_pair_leaves_all_settings():
    lacking = setting()
    lacking = lacking[lacking["prompt"] != "p0"]
    assert sound_prompts({4: lacking, 8: setting()}, {4: frozenset(["p0"])}) == (
        {"p0"},
        frozenset(),
    )
