"""Exclusions: the prompts that answer if some pairs are flagged; planted cases."""

import pandas as pd
import pytest

from specmoe.analysis.exclusions import MOST_FLAGGED, find_exclusions

PROMPTS = [f"p{number}" for number in range(8)]
MOST = int(MOST_FLAGGED * len(PROMPTS))


def setting(*flagged, once=(), impossible=()):
    """Return a setting's pairs, two repeats of each prompt; those of named ones are flagged."""
    rows = [
        {
            "prompt": prompt,
            "flagged": prompt in (*flagged, *impossible) or (repeat == 0 and prompt in once),
            "impossible": repeat == 0 and prompt in impossible,
        }
        for prompt in PROMPTS
        for repeat in range(2)
    ]
    return pd.DataFrame(rows)


MANY, FEW, OTHER = setting("p1", "p2"), setting("p3"), setting("p4")
WITHOUT_P0 = setting().query("prompt != 'p0'")


@pytest.mark.parametrize(
    ("settings", "lost", "unusable", "excluded"),
    [
        pytest.param({4: setting("p1"), 8: setting()}, {}, {"p1"}, set(), id="leaves all"),
        pytest.param({4: setting(once=["p1"]), 8: setting()}, {}, set(), set(), id="a pair left"),
        pytest.param(
            {4: setting(impossible=["p1"]), 8: setting("p2")}, {}, {"p2"}, {4}, id="impossible"
        ),
        pytest.param({4: setting(*PROMPTS[:MOST])}, {}, {*PROMPTS[:MOST]}, set(), id="most"),
        pytest.param({4: setting(*PROMPTS[: MOST + 1])}, {}, set(), {4}, id="too many"),
        pytest.param({8: MANY, 4: FEW, 2: OTHER}, {}, {"p3", "p4"}, {8}, id="fewer come first"),
        pytest.param({2: OTHER, 4: FEW, 8: MANY}, {}, {"p3", "p4"}, {8}, id="whatever the order"),
        pytest.param(
            *({4: WITHOUT_P0, 8: setting()}, {4: frozenset(["p0"])}, {"p0"}, set()),
            id="no pair left by the machine",
        ),
    ],
)
def test_prompts_that_leave_all_settings_and_settings_that_are_excluded(
    settings, lost, unusable, excluded
):
    assert find_exclusions(settings, lost) == (unusable, excluded)
