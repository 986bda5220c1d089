"""Divergences of runs from their baselines, and the gap between the two tokens."""

import pytest

from specmoe.measure.divergence import batch_sizes, find_divergences, weigh

from ...blocks import row as made_row

PLAIN = made_row("t", run="B/t/d/r0/alone/p/p0", block="B/t/d/r0", tokens=[5, 6, 7, 8])


def drafted(tokens, prefix=None, **more):
    """Return a run with a draft model; `prefix` is what its text shares with the baseline's."""
    given = {"run": "B/p", "baseline": PLAIN["run"], "gamma": 4, "common_prefix": prefix}
    return made_row(**{"target": "t", "draft": "d", "tokens": tokens} | given | more)


def test_a_run_diverges_at_the_first_token_that_differs():
    [found] = find_divergences([PLAIN, drafted([5, 6, 9, 8], 2)], "t")
    assert (found["position"], found["token"], found["baseline_token"]) == (2, 9, 7)
    assert found["prefix"] == (5, 6)
    assert found["baseline_block"] == "B/t/d/r0"


@pytest.mark.parametrize(
    "other",
    [
        drafted([5, 6, 7, 8], 4),
        drafted(None),
        drafted([1, 2, 3, 4], baseline=None),
        drafted([5, 6, 9, 8], 2, target="another"),
    ],
    ids=["the same tokens", "tokens not known", "no baseline", "another target"],
)
def test_other_runs_do_not_diverge(other):
    assert not [*find_divergences([PLAIN, other], "t")]


def test_a_gap_is_the_lead_of_the_baselines_token_by_size_of_batch():
    one_by_one = {7: -0.5, 9: -0.75, 3: -3.0}
    judged = weigh(7, 9, {1: one_by_one, 2: {9: -0.5, 7: -0.625}})
    assert judged == {"likeliest": 7, "gap_nats": 0.25, "gap_nats_by_batch": {2: -0.125}}

    # That of an unlisted token is a lower bound without batches.
    judged = weigh(7, 9, {1: {7: -0.5, 1: -8.5}, 2: {7: -0.5, 1: -8.0}})
    assert judged == {"likeliest": 7, "gap_nats": 8.0, "gap_nats_by_batch": {}}


@pytest.mark.parametrize(
    ("gamma", "asked"),
    [(1, [2]), (2, [2, 3]), (4, [2, 4, 5]), (7, [2, 4, 8]), (16, [2, 4, 8, 16, 17])],
)
def test_batch_sizes_are_powers_of_two_and_a_full_verification(gamma, asked):
    assert batch_sizes(gamma) == asked
