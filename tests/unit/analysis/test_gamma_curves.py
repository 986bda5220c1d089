"""Predicted draft lengths against runs whose costs and agreements are planted."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.analysis.cost_tables import fit_pairs
from specmoe.analysis.gamma_curves import LONGEST, cheapest, gamma_curves
from specmoe.analysis.summaries import with_speedups
from specmoe.audit.reading import Limits, readings_of, rounds_from_agreement
from specmoe.config.schema import Statistics
from specmoe.runs.agreement import read_agreement
from specmoe.runs.pass_times import read_pass_times

from .. import simulated_rounds
from ..simulated_rounds import GAMMAS, N_PREDICT, agreed, agreement, frame, imposed, pass_times

SETTINGS = Statistics()
AGREES = list(np.random.default_rng(3).random(N_PREDICT) < 0.75)
NEVER, ALWAYS = [False] * N_PREDICT, [True] * N_PREDICT


def curves(agrees, *, times=None, gammas=GAMMAS, fitted=True, hybrid=True):
    """Return both tables of a pair with those agreements."""
    runs = frame(
        [
            *(imposed("moe_q4", hybrid=hybrid) if fitted else []),
            *agreed("B", "moe_q4", gammas, agrees, hybrid=hybrid),
        ]
    )
    compared = with_speedups(runs)
    times = read_pass_times(None) if times is None else times
    costs = fit_pairs(compared, runs, times, SETTINGS)
    own = compared[compared["imposed_acceptance"].isna()]
    readings = readings_of(agreement("moe_q4", agrees))
    tables = gamma_curves(own, runs, readings, costs, times, SETTINGS)
    assert tables["best_by_category"].empty
    return tables["gamma_curves"], tables["best_gammas"]


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("agrees", [AGREES, NEVER, ALWAYS])
def test_with_fitted_costs_every_measured_setting_is_predicted(agrees, hybrid):
    curve, best = curves(agrees, hybrid=hybrid)
    [best] = best.to_dict("records")
    assert list(curve["gamma"]) == list(range(1, LONGEST + 1))
    measured = curve[curve["speedup"].notna()]
    assert tuple(measured["gamma"]) == GAMMAS
    assert measured["predicted"].to_numpy() == pytest.approx(measured["speedup"], rel=1e-6)
    assert best["worst"] < 1e-6
    assert not best["passes_alone"]
    assert best["agreement"] == np.mean(agrees[1:])


def test_a_length_that_nobody_ran_is_what_a_run_of_it_gives():
    told = curves(AGREES, gammas=(4,))[0].set_index("gamma")["predicted"]
    ran = curves(AGREES, gammas=(6, 20))[0].set_index("gamma")["speedup"]
    assert told[6] == pytest.approx(ran[6], rel=1e-6)
    assert told[20] == pytest.approx(ran[20], rel=1e-6)


def test_the_best_length_is_the_highest_of_the_curve_and_no_policy_beats_the_oracle():
    curve, best = curves(AGREES)
    [best] = best.to_dict("records")
    assert best["best"] == curve["predicted"].max()
    assert curve.set_index("gamma")["predicted"].idxmax() == best["best_gamma"]
    # The draft is sure where it is right, so stopping at once at what it is unsure of costs little.
    assert best["best"] < best["by_chance"] < best["oracle"]
    assert best["regret"] == best["oracle"] / best["by_chance"]


def test_a_draft_that_never_agrees_is_best_left_alone():
    [best] = curves(NEVER)[1].to_dict("records")
    assert best["best"] < 1
    assert best["oracle"] == pytest.approx(1)
    assert best["regret"] == pytest.approx(1)


def test_without_imposed_acceptance_rounds_are_their_timed_passes_alone():
    curve, best = curves(ALWAYS, times=pass_times(repeats=3), fitted=False)
    [best] = best.to_dict("records")
    assert best["passes_alone"]
    four = curve[curve["gamma"] == 4].iloc[0]
    # 63 tokens in 12 rounds that draft four and one that drafts two; c is the draft's pass of one.
    drafting = simulated_rounds.reread_cost(1) * (12 * 4 + 2)
    rounds = [simulated_rounds.verify_cost(w) + simulated_rounds.reread_cost(w) for w in (5, 3)]
    steps = drafting + 12 * rounds[0] + rounds[1]
    assert four["predicted"] == pytest.approx((N_PREDICT - 1) / steps, rel=1e-6)
    assert four["predicted"] > four["speedup"]  # what a round takes beside them is missing


def test_each_category_of_text_has_its_own_best_length():
    texts = {"code": ALWAYS, "prose": NEVER}
    rows, read = [], []
    for number, (category, agrees) in enumerate(texts.items()):
        own = {"prompt": category, "category": category}
        for one in agreed("B", "moe_q4", (4,), agrees):
            named = {key: one[key] and f"{one[key]}-{category}" for key in ("run", "baseline")}
            rows.append(one | own | named)
        read.append(agreement("moe_q4", agrees).assign(prompt=category, text=number))
    runs = frame(rows)
    readings = readings_of(pd.concat(read))
    tables = gamma_curves(with_speedups(runs), runs, readings, [], pass_times(repeats=3), SETTINGS)
    found = tables["best_by_category"].set_index("category")
    assert list(found.index) == ["code", "prose"]
    assert found.loc["code", "best_gamma"] > 4
    assert found.loc["prose", "best_gamma"] == 1
    [both] = tables["best_gammas"].to_dict("records")
    assert found["tokens"].sum() == both["tokens"]
    assert found.loc["prose", "best"] < both["best"] < found.loc["code", "best"]


def test_without_a_reading_or_costs_nothing_is_predicted():
    runs = frame(agreed("B", "moe_q4", (4,), AGREES))
    given = with_speedups(runs), runs
    for readings, times in (
        (readings_of(read_agreement(None)), pass_times()),
        (readings_of(agreement("moe_q4", AGREES)), read_pass_times(None)),
        (readings_of(agreement("moe_q4", AGREES).assign(prompt="other")), pass_times()),
    ):
        tables = gamma_curves(*given, readings, [], times, SETTINGS)
        assert all(isinstance(table, pd.DataFrame) and table.empty for table in tables.values())


@given(
    st.lists(st.booleans(), min_size=2, max_size=6),
    st.lists(st.floats(0.5, 3), min_size=1, max_size=3),
)
def test_the_oracle_takes_the_least_time_of_all_that_draft_what_holds(agrees, more):
    limits = Limits(len(agrees))
    rounds = list(np.cumsum(more))

    def time(lengths):
        played = rounds_from_agreement(agrees, lengths, limits)
        if played.accepted < played.drafted:
            return np.inf
        return played.single_steps + sum(rounds[n - 1] for n in played.drafted_lengths)

    choices = product(range(len(rounds) + 1), repeat=len(agrees) - 1)
    least = min(time([0, *lengths]) for lengths in choices)
    assert time(cheapest(agrees, rounds, limits)) == pytest.approx(least)
