"""Decisions by hand; how often they are wrong is in test_coverage.py."""

import numpy as np
import pytest

from specmoe.analysis.decision import Answer, decide
from specmoe.analysis.intervals import MANY, SAME_SESSION, Mean, Session


def decided(these, others=None, *, errors=0.01, session=SAME_SESSION, **looks):
    """Return the decision on settings of these speedups; those on other prompts may differ."""
    logs = np.log(these)
    of_others = logs if others is None else np.log(others)
    means = [
        Mean(one, np.full(len(one), errors), np.full(len(one), MANY))
        for one in (logs, of_others, logs - logs.max())
    ]
    return decide(*means, confidence=0.95, session=session, choice=len(these), **looks)


@pytest.mark.parametrize(
    ("these", "others", "answer"),
    [
        ((1.2, 0.5), None, Answer.ON),
        ((1.2, 0.5), (0.98, 0.5), Answer.HERE),
        ((0.9, 0.5), None, Answer.OFF),
        ((1.01, 0.5), None, Answer.LITTLE),
        ((1.09, 0.5), (1.0, 0.5), Answer.HERE),
        ((0.99, 1.0), None, Answer.LITTLE),
    ],
)
def test_the_answer_to_known_speedups(these, others, answer):
    assert str(decided(these, others).answer) == answer


def test_a_setting_is_beaten_by_a_rival_or_by_one_and_the_fastest_by_neither():
    assert decided((1.3, 1.29, 1.2, 0.9)).beaten.tolist() == [False, False, True, True]
    assert decided((0.99, 0.9), errors=0.02).beaten.tolist() == [False, True]


def test_repeats_help_unless_the_session_outweighs_blocks_or_none_is_left():
    looks = {"look": 2, "looks": 6}
    assert decided((1.05, 1.0), errors=0.05, **looks).more_helps
    assert not decided((1.05, 1.0), errors=0.05, session=Session(0.2), **looks).more_helps
    assert not decided((1.05, 1.0), errors=0.05, look=6, looks=6).more_helps
    assert not decided((1.5, 1.0), errors=0.05, **looks).more_helps  # it is on
    assert decided((1.5, 1.0), errors=np.nan, look=1, looks=6).more_helps
    assert not decided((1.5, 1.0), errors=np.nan).more_helps
