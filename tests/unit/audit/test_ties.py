"""Near ties: gaps that batches alone close, there or at another divergence of the target."""

import pytest

from specmoe.audit.evidence import Gap, gaps_of


def found(*divergences):
    return gaps_of({"target": "t", "divergences": list(divergences)})


def divergence(run, gap, by_width, options=""):
    return {
        "run": run,
        "engine_options": options,
        "position": 5,
        "gap_nats": gap,
        "gap_nats_by_batch": by_width,
    }


def test_the_narrowest_batches_that_give_the_runs_token_are_named():
    gaps = found(divergence("B", 0.25, {"2": 0.25, "4": -0.125, "5": -0.25}))
    assert gaps == {"B": Gap(5, gap_nats=0.25, moved_nats=0.5, closed_by=4)}


@pytest.mark.parametrize(("options", "near"), [("", 0.5), ("-ctk q8_0", 0.125)])
def test_batches_move_the_gaps_of_a_target_as_far_as_at_any_of_its_divergences(options, near):
    """Those with other options by themselves."""
    gaps = found(
        divergence("near", 0.25, {"2": 0.125}), divergence("far", 3.0, {"2": 2.5}, options)
    )
    assert {run: gap.moved_nats for run, gap in gaps.items()} == {"near": near, "far": 0.5}
    assert {gap.closed_by for gap in gaps.values()} == {None}


def test_a_gap_that_no_batch_measured_was_not_moved():
    assert found(divergence("B", 9.0, {})) == {"B": Gap(5, 9.0, 0.0, None)}
