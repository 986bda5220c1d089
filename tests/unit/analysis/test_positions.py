"""Acceptance by position, by hand."""

import pandas as pd
import pytest

from specmoe.analysis.rounds import acceptance_by_position
from specmoe.engine.server_log import Verification, accepted_lengths, tried_per_position


def logged(name, rounds, gamma=4, **columns):
    """Return a run of rounds (accepted, drafted, restored), as its log gives them."""
    trace = [Verification(*one) for one in rounds]
    lengths = accepted_lengths(trace, gamma)
    return {
        "run": name,
        **{"suite": "M", "target": "t", "draft": "d", "gamma": gamma},
        **{"protocol": "paired", "engine": "e"},
        "tried_per_position": tried_per_position(trace, gamma),
        "accepted_per_position": [sum(lengths[place + 1 :]) for place in range(gamma)],
    } | columns


def by_position(*runs):
    """Return tried, accepted, conditional and joint of each position."""
    frame = acceptance_by_position(pd.DataFrame(runs))
    return frame[["position", "tried", "accepted", "conditional", "joint"]].to_dict("list")


def test_each_position_counts_the_rounds_that_reached_it():
    # Four rounds of 4 tokens, of which 4, 2, 1 and 0 were accepted.
    rows = by_position(logged("a", [(4, 4, False), (2, 4, False), (1, 4, False), (0, 4, False)]))
    assert rows["position"] == [1, 2, 3, 4]
    assert rows["tried"] == [4, 3, 2, 1]
    assert rows["accepted"] == [3, 2, 1, 1]
    assert rows["conditional"] == pytest.approx([3 / 4, 2 / 3, 1 / 2, 1])
    assert rows["joint"] == pytest.approx([3 / 4, 1 / 2, 1 / 4, 1 / 4])


def test_a_short_draft_tries_no_later_position():
    # A draft of one token that is accepted says nothing of the second position.
    rows = by_position(logged("a", [(1, 1, False), (1, 2, False)]))
    assert rows["tried"] == [2, 1]
    assert rows["conditional"] == [1, 0]


def test_a_replay_is_no_round_of_its_own():
    # Two of four were accepted; the state was restored and the two decoded again with a token that
    # the target gave itself.
    rows = by_position(logged("a", [(2, 4, True), (3, 3, False)]))
    assert rows["tried"] == [1, 1, 1]
    assert rows["accepted"] == [1, 1, 0]


def test_positions_that_were_never_tried_are_left_out_and_runs_are_summed():
    rows = by_position(logged("a", [(0, 4, False)]), logged("b", [(1, 4, False)]), logged("c", []))
    assert rows["position"] == [1, 2]
    assert rows["tried"] == [2, 1]
    assert rows["conditional"] == [0.5, 0]
    assert by_position(logged("c", []))["position"] == []


def test_every_cell_has_its_own_positions_and_a_run_without_a_log_has_none():
    frame = acceptance_by_position(
        pd.DataFrame(
            [
                logged("a", [(1, 1, False)]),
                logged("b", [(0, 1, False)], gamma=2),
                logged("c", [], draft="none"),
                logged("d", [], suite="K", tried_per_position=None),
            ]
        )
    )
    assert frame[["gamma", "position", "conditional"]].to_numpy().tolist() == [
        [4, 1, 1],
        [2, 1, 0],
    ]
