"""How often a method drafts, and how far rounds get: by hand."""

import pandas as pd
import pytest

from specmoe.analysis.rounds import (
    acceptance_by_position,
    accepted_lengths,
    drafting_share,
)
from specmoe.engine import server_log


def run(**columns):
    return {
        **{"suite": "M", "target": "t", "draft": "d", "gamma": 4},
        **{"protocol": "paired", "engine": "e", "method": "ngram-mod"},
        **{"generated": 101, "rounds": 10, "drafted": 40, "accepted": 20},
        **{"replays": 6, "replays_rejected": 1},
        "accepted_lengths": [4, 2, 1, 1, 2],
    } | columns


def test_the_drafting_share_is_of_all_steps_but_replays():
    # 100 tokens after the first: 20 accepted, 5 of replays, 75 of a step each, 10 of them rounds.
    share = drafting_share(pd.DataFrame([run()]))
    assert share.tolist() == pytest.approx([10 / 75])
    # A method that drafts always has no other steps: each gives one token besides those accepted.
    always = run(generated=31, replays=0, replays_rejected=0)
    assert drafting_share(pd.DataFrame([always])).tolist() == [1]


def test_a_method_that_never_drafts_has_a_share_of_zero_and_unknown_counts_none():
    never = run(rounds=0, drafted=0, accepted=0, replays=0, replays_rejected=0)
    assert drafting_share(pd.DataFrame([never])).tolist() == [0]
    assert drafting_share(pd.DataFrame([run(rounds=None)])).isna().tolist() == [True]


def test_rounds_are_counted_by_the_tokens_that_they_accepted():
    frame = accepted_lengths(pd.DataFrame([run(), run()]))
    assert frame["least"].tolist() == frame["most"].tolist() == [0, 1, 2, 3, 4]
    assert frame["counted"].tolist() == [8, 4, 2, 2, 4]
    assert frame["share"].tolist() == [0.4, 0.2, 0.1, 0.1, 0.2]


def test_rare_lengths_are_counted_together_and_the_last_range_is_open():
    long = run(gamma=20, accepted_lengths=[1, 0, 0, 0, 0, 1, 0, 0, 1, 1, *[0] * 6, 1, 1, 0, 0, 4])
    frame = accepted_lengths(pd.DataFrame([long]))
    ends = [(row.least, row.counted) for row in frame.itertuples()]
    assert ends == [(0, 1), (1, 0), (2, 0), (3, 0), (4, 0), (5, 2), (9, 2), (17, 5)]
    assert frame["most"].iloc[5] == 8
    assert pd.isna(frame["most"].iloc[-1])
    assert frame["share"].sum() == pytest.approx(1)


def test_cells_without_rounds_or_without_a_log_have_no_lengths():
    empty = run(accepted_lengths=[0] * 5)
    assert accepted_lengths(pd.DataFrame([empty, run(draft="e", accepted_lengths=None)])).empty


def logged(name, rounds, gamma=4, **columns):
    """Return a run of rounds (accepted, drafted, restored), as its log gives them."""
    trace = [server_log.Verification(*one) for one in rounds]
    lengths = server_log.accepted_lengths(trace, gamma)
    return {
        "run": name,
        **{"suite": "M", "target": "t", "draft": "d", "gamma": gamma},
        **{"protocol": "paired", "engine": "e"},
        "tried_per_position": server_log.tried_per_position(trace, gamma),
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
        [2, 1, 0],
        [4, 1, 1],
    ]
