"""The server's log has every verification; replays are counted from it."""

import pytest

from specmoe.engine.server_log import (
    Verification,
    count_rejected_replays,
    count_replays,
    read_draft_times,
    read_trace,
)

LOG = """
0.01 I slot   operator(): id  0 | task 1 | accepted  5/16 draft tokens (restore checkpoint)
0.02 I slot   operator(): id  0 | task 1 | accepted  6/ 6 draft tokens
0.03 I slot print_timing: id  0 | task 1 | draft acceptance = 0.24691 (   40 accepted /   162 ...
0.04 I slot   operator(): id  0 | task 29 | accepted 16/16 draft tokens
"""


def test_each_request_has_its_verifications_in_order():
    assert read_trace(LOG) == [
        [Verification(5, 16, True), Verification(6, 6, False)],
        [Verification(16, 16, False)],
    ]


def test_the_time_of_drafting_is_logged_as_a_sum_since_the_start():
    line = "0.07 I spec: statistics     draft-simple: #calls = 1, dur(b,g,a) = 0.0, {}, 0.01 ms\n"
    log = "".join(line.format(ms) for ms in (182.5, 200.5, 230.75))
    assert read_draft_times(log) == [182.5, 18.0, 30.25]


def test_a_log_without_a_trace_has_no_requests():
    assert read_trace("llama_server: listening\n") == []
    assert read_draft_times("llama_server: listening\n") == []


@pytest.mark.parametrize(
    ("restored", "replays", "rejected"),
    [
        ([], 0, 0),
        ([False, False], 0, 0),
        ([True, False, False], 1, 0),
        ([True, False, True, False], 2, 0),
        ([True, True, False], 2, 1),
        ([True, True, True, False, True, False], 4, 2),
    ],
)
def test_a_replay_follows_a_restored_pass_and_is_rejected_if_restored_itself(
    restored, replays, rejected
):
    trace = [Verification(0, 1, one) for one in restored]
    assert count_replays(trace) == replays
    assert count_rejected_replays(trace) == rejected
