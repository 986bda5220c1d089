"""Predicted draft lengths against runs of known costs and agreements."""

import numpy as np
import pytest

from specmoe.analysis.cost_tables import fit_pairs
from specmoe.analysis.gamma_curves import gamma_curves
from specmoe.analysis.summaries import with_speedups
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.config.schema import Statistics
from specmoe.runs.other_tables import read_agreement, read_pass_times

from .. import simulated_rounds
from ..simulated_rounds import GAMMAS, N_PREDICT, agreed, agreement, forced, frame, pass_times

SETTINGS = Statistics()
AGREES = list(np.random.default_rng(3).random(N_PREDICT) < 0.75)
NEVER, ALWAYS = [False] * N_PREDICT, [True] * N_PREDICT


def curves(agrees, *, repeats=2, gammas=GAMMAS, fitted=True, hybrid=True):
    """Return the table of a pair with those agreements, its passes timed so often."""
    runs = frame(
        [
            *(forced("moe_q4", hybrid=hybrid) if fitted else []),
            *agreed("B", "moe_q4", gammas, agrees, hybrid=hybrid),
        ]
    )
    compared = with_speedups(runs)
    times = pass_times(repeats=repeats)
    costs = fit_pairs(compared, times, SETTINGS)
    own = compared[compared["forced_acceptance"].isna()]
    scores = scores_by_run(agreement("moe_q4", agrees))
    return gamma_curves(own, runs, scores, costs, times, SETTINGS)


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("agrees", [AGREES, NEVER, ALWAYS])
def test_with_fitted_costs_every_measured_setting_is_predicted(agrees, hybrid):
    curve = curves(agrees, hybrid=hybrid)
    assert list(curve["gamma"]) == list(range(1, max(GAMMAS) + 1))
    measured = curve[curve["speedup"].notna()]
    assert tuple(measured["gamma"]) == GAMMAS
    assert measured["predicted"].to_numpy() == pytest.approx(measured["speedup"], rel=1e-6)
    assert (curve["predicted"].max() < 1) == (agrees is NEVER)


def test_a_length_that_nobody_ran_is_what_a_run_of_it_gives():
    predicted = curves(AGREES, gammas=(4,)).set_index("gamma").loc[[6, 20], "predicted"]
    ran = curves(AGREES, gammas=(6, 20)).set_index("gamma").loc[[6, 20], "speedup"]
    assert predicted.tolist() == pytest.approx(ran.tolist(), rel=1e-6)


def test_without_forced_acceptance_rounds_are_their_timed_passes_alone():
    curve = curves(ALWAYS, repeats=3, fitted=False)
    four = curve[curve["gamma"] == 4].iloc[0]
    # 63 tokens in 12 rounds that draft four and one that drafts two; c is the draft model's pass
    # of one.
    drafting = simulated_rounds.catchup_cost(1) * (12 * 4 + 2)
    rounds = [simulated_rounds.verify_cost(w) + simulated_rounds.catchup_cost(w) for w in (5, 3)]
    steps = drafting + 12 * rounds[0] + rounds[1]
    assert four["predicted"] == pytest.approx((N_PREDICT - 1) / steps, rel=1e-6)
    assert four["predicted"] > four["speedup"]  # what a round takes beside them is missing


def test_without_scores_or_costs_nothing_is_predicted():
    runs = frame(agreed("B", "moe_q4", (4,), AGREES))
    given = with_speedups(runs), runs
    for scores, times in (
        (scores_by_run(read_agreement(None)), pass_times()),
        (scores_by_run(agreement("moe_q4", AGREES)), read_pass_times(None)),
        (scores_by_run(agreement("moe_q4", AGREES).assign(prompt="other")), pass_times()),
    ):
        assert gamma_curves(*given, scores, [], times, SETTINGS).empty
