"""Divergences of runs from their baselines, and the gap between the two tokens."""

import pytest

from specmoe.measure.divergence import (
    batch_sizes,
    find_divergences,
    judge,
)


def row(run, tokens, *, baseline=None, prefix=None, target="t"):
    return {
        "run": run,
        "block": "/".join(run.split("/")[:4]),
        "target": target,
        "prompt": "p",
        "gamma": 4,
        "tokens": tokens,
        "baseline": baseline,
        "common_prefix": prefix,
    }


PLAIN = row("B/t/d/r0/alone/p/p0", [5, 6, 7, 8])


def test_a_run_diverges_at_the_first_token_that_differs():
    [found] = find_divergences(
        [PLAIN, row("B/p", [5, 6, 9, 8], baseline=PLAIN["run"], prefix=2)], "t"
    )
    assert (found.position, found.token, found.baseline_token) == (2, 9, 7)
    assert found.prefix == (5, 6)
    assert found.baseline_block == "B/t/d/r0"


@pytest.mark.parametrize(
    "other",
    [
        row("B/p", [5, 6, 7, 8], baseline=PLAIN["run"], prefix=4),
        row("B/p", None, baseline=PLAIN["run"]),
        row("B/p", [1, 2, 3, 4]),
        row("B/p", [5, 6, 9, 8], baseline=PLAIN["run"], prefix=2, target="another"),
    ],
    ids=["the same tokens", "tokens not known", "no baseline", "another target"],
)
def test_other_runs_do_not_diverge(other):
    assert find_divergences([PLAIN, other], "t") == []


def test_a_gap_is_the_lead_of_the_baselines_token_by_size_of_batch():
    one_by_one = {7: -0.5, 9: -0.75, 3: -3.0}
    judged = judge(7, 9, {1: one_by_one, 2: {9: -0.5, 7: -0.625}})
    assert judged == {"likeliest": 7, "gap_nats": 0.25, "gap_nats_by_batch": {2: -0.125}}

    # That of an unlisted token is a lower bound without batches.
    judged = judge(7, 9, {1: {7: -0.5, 1: -8.5}, 2: {7: -0.5, 1: -8.0}})
    assert judged == {"likeliest": 7, "gap_nats": 8.0, "gap_nats_by_batch": {}}


@pytest.mark.parametrize(
    ("gamma", "asked"),
    [(1, [2]), (2, [2, 3]), (4, [2, 4, 5]), (7, [2, 4, 8]), (16, [2, 4, 8, 16, 17])],
)
def test_batch_sizes_are_powers_of_two_and_a_full_verification(gamma, asked):
    assert batch_sizes(gamma) == asked
