"""The server's counters and log; the log has every verification, and so the replays."""

from pathlib import Path

import pytest

from specmoe.engine.responses import (
    Verification,
    error_in,
    given_in_replays,
    read_counters,
    read_requests,
    reason_not_to_speculate,
    round_counts,
)


def test_counters_are_read_by_name():
    text = '# TYPE a counter\nllamacpp:n_decode_total 4\nper_pos_total{position="1"} 2\n'
    assert read_counters(text) == {"n_decode_total": 4.0, "per_pos_total/1": 2.0}
    with pytest.raises(ValueError):
        read_counters("n_decode_total four\n")


LOG = Path(__file__).with_name("server_log.txt").read_text()
STATISTICS = (
    "0.07 I spec common_specu: statistics {:>16}: #calls(b,g,a) =    1     61      1,"
    " #gen drafts = {:6}, #acc drafts =     1, #gen tokens = {:6}, #acc tokens = {:5},"
    " #mean acc len = 2.00, #acc rate/pos = (1.000), dur(b,g,a) = 0.000, {}, 0.000 ms"
)


def logged(*counts):
    """Return the lines that a server with one type logs after each request."""
    return [STATISTICS.format("draft-simple", *one) for one in counts]


def test_each_request_has_its_verifications_and_its_own_time_of_drafting():
    lines = logged((1, 16, 6, 182.0), (2, 32, 22, 200.0), (2, 32, 22, 200.0))
    pool = STATISTICS.format("ngram-mod", 1, 64, 9, 0.5)  # beside the draft model, and only once
    log = LOG.format(*(f"{pool}\n{line}" for line in lines))
    of_slots = read_requests(log)
    first, second, third = of_slots[0]
    assert [one["verifications"] for one in of_slots[1]] == [[Verification(1, 4, False)]]
    assert first["verifications"] == [Verification(5, 16, True), Verification(6, 6, False)]
    assert second["verifications"] == [Verification(16, 16, False)]
    assert third["verifications"] == []  # nothing was drafted
    assert [one["draft_ms"] for one in (first, second, third)] == [182.5, 18.0, 0.0]
    assert first["drafted_by"] == {"ngram-mod": [64, 9], "draft-simple": [16, 6]}
    assert second["drafted_by"] == {"ngram-mod": [0, 0], "draft-simple": [16, 16]}


def test_a_replay_holds_a_token_that_nobody_drafted_and_is_rejected_if_restored_itself():
    trace = [
        Verification(2, 4, True), Verification(2, 3, True), Verification(3, 3, False),
        Verification(4, 4, False),
        Verification(0, 4, True), Verification(1, 1, False),
        Verification(1, 3, False),
    ]  # fmt: skip
    assert round_counts(trace, 4) == {
        # Rounds drafted 4, 4, 4 and 3 tokens, and accepted 2, 4, 0 and 1.
        "accepted_lengths": [1, 1, 1, 0, 1],
        "drafted_lengths": [0, 0, 0, 1, 3],
        "drafted_per_position": [4, 3, 2, 1],
        "replays": 3,
        "replays_rejected": 1,
    }
    assert given_in_replays(trace) == 2  # of the first round and of the third


NO_HEAD = "failed to initialize speculative decoding context: no head"
NO_INTEGER = 'error while handling "--poll": stoi'


@pytest.mark.parametrize(
    ("read", "log", "found"),
    [
        (reason_not_to_speculate, "0.1 I listening", None),
        (reason_not_to_speculate, f"0.1 E srv load_model: {NO_HEAD}\n", NO_HEAD),
        (
            reason_not_to_speculate,
            "W dflash: requested draft size (n_max=16) exceeds the trained block size 8 --",
            "exceeds the trained block size 8",
        ),
        (error_in, "0.1 I loading\n0.2 E llama: full\n0.3 E cmn  init: failed\n", "llama: full"),
        (error_in, f"{NO_INTEGER}\n\nusage:\n", NO_INTEGER),
        (error_in, "error: invalid argument: --frob\n", "error: invalid argument: --frob"),
        (error_in, "0.00.1 I all is well, error-free\n0.00.2 W E minor\n", None),
        (error_in, "", None),
    ],
)
def test_what_a_server_says_of_errors_and_speculation_is_found_in_its_log(read, log, found):
    assert read(log) == found
