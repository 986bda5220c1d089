"""The cost model finds the costs that runs were made from, and predicts other runs from them."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.cost_fit import timed_costs, timed_parts
from specmoe.analysis.cost_model import CostModel, RunCounts, shares
from specmoe.analysis.cost_tables import (
    WHOLE,
    break_even,
    fit_pairs,
    prediction_errors,
    predictions,
    verification,
)
from specmoe.analysis.summaries import with_speedups
from specmoe.config.schema import Statistics

from .. import simulated_rounds as made
from ..simulated_rounds import (
    DRAFT_COST,
    GAMMAS,
    STEP_MS,
    forced,
    frame,
    pass_times,
    real,
    verify_cost,
)

SETTINGS = Statistics()
WIDTHS = [1, *(gamma + 1 for gamma in GAMMAS)]


def pairs_of(runs):
    """Return the costs of every target and draft."""
    return fit_pairs(with_speedups(runs), pass_times(), SETTINGS)


def predicted_of(runs):
    """Return the predictions of every setting, by the costs fitted on the same runs."""
    return predictions(pairs_of(runs), with_speedups(runs), SETTINGS)


def round_costs(pairs):
    """Return what rounds of every γ cost."""
    return verification(pairs, SETTINGS).dropna(subset="round_ms")


@cache
def fitted(**how):
    """Return the costs fitted on runs of forced acceptance and on timed passes."""
    times = pass_times(repeats=how.get("repeats", 2), noise=how.get("noise", 0.0))
    (pair,) = fit_pairs(with_speedups(frame(forced(**how))), times, SETTINGS)
    return pair


def by_hand(gammas, drafts, widths, passes, replay, *, replays=True):
    """Return a cost model of given costs, where a token takes 1, without intervals."""
    costs = np.array([1.0, *drafts, *passes, replay], dtype=float)
    knots = {"token": (1,), "draft": gammas, "pass": widths, "catchup": (), "overhead": ()}
    knots |= {"replay": (0,)}
    return CostModel(knots, costs, np.empty((0, len(costs))), replays, 0, 0.95)


@pytest.mark.parametrize("hybrid", [True, False])
def test_known_costs_are_recovered_and_timed_passes_tell_them_apart(hybrid):
    pair = fitted(hybrid=hybrid)
    model = pair.model
    assert list(model.knots["pass"]) == WIDTHS
    assert model.costs[0] == pytest.approx(STEP_MS)
    assert model.costs[1 : 1 + len(GAMMAS)] == pytest.approx([STEP_MS * DRAFT_COST] * len(GAMMAS))
    truth = pytest.approx([STEP_MS * verify_cost(n_tokens) for n_tokens in WIDTHS])
    assert [model.cost("pass", n_tokens).value for n_tokens in WIDTHS] == truth
    assert model.replays is hybrid
    table = verification([pair], SETTINGS)
    assert table["n_tokens"].tolist() == WIDTHS
    assert table["pass_ms"].tolist() == truth
    assert table["of_token"].tolist() == pytest.approx([*map(verify_cost, WIDTHS)])
    assert set(table["parts"]) == {"checkpoint, sampling" if hybrid else "sampling"}
    costs = round_costs([pair])
    widths = costs["gamma"] + 1
    steps = costs.filter(like="_ms") / STEP_MS
    assert steps["catchup_ms"].tolist() == pytest.approx([*widths.map(made.catchup_cost)])
    assert steps["overhead_ms"].to_numpy() == pytest.approx(made.OVERHEAD_COST)
    assert steps["round_ms"].tolist() == pytest.approx([*widths.map(made.pass_cost)])
    # A replay saves no state, so what a round needs for that counts as its own.
    replay = made.REPLAY_COST + made.OVERHEAD_COST if hybrid else 0
    assert model.costs[-1] == pytest.approx(STEP_MS * replay, abs=1e-9)
    assert steps["replay_ms"].to_numpy() == pytest.approx(replay or np.nan, nan_ok=True)


def test_passes_are_as_timed_and_may_fall_with_the_width():
    pair = fitted(noise=0.1)
    logs = np.log(pair.timed.passes[9])
    row = verification([pair], SETTINGS).set_index("n_tokens").loc[9]
    assert row["pass_ms"] == pytest.approx(np.exp(logs.mean()))
    # Two repeats: with one degree of freedom alone, Student's t is 12.7 times half their distance.
    reach = np.log(row["pass_ms_high"] / row["pass_ms"])
    assert 2 * logs.std(ddof=0) < reach < 12.706 * logs.std(ddof=0)
    edge = pass_times()
    edge.loc[(edge["n_tokens"] == 9) & (edge["outputs"] == "all"), ["ms", "first_ms"]] = 20.0
    (pair,) = fit_pairs(with_speedups(frame(forced())), edge, SETTINGS)
    shown = verification([pair], SETTINGS).set_index("n_tokens")
    assert shown["pass_ms"][9] == pytest.approx(20.0)
    assert shown["pass_ms"][9] < shown["pass_ms"][5]
    # Of what runs took, the overhead is the rest.
    rounds = STEP_MS * made.pass_cost(9)
    assert shown["round_ms"][9] == pytest.approx(rounds)
    catchup = STEP_MS * made.catchup_cost(9)
    assert shown["overhead_ms"][9] == pytest.approx(rounds - catchup - 20.0)


@pytest.mark.parametrize("hybrid", [True, False])
def test_rows_without_equal_passes_are_compared_with_the_servers_own_token(hybrid):
    # Version 2: a pass of one token had a new graph too, here of half a step.
    graph = 0.5 * STEP_MS
    cold = pass_times().assign(
        first_ms=np.nan, sampled_ms=np.nan, ms=lambda rows: rows["ms"] + graph
    )
    cold.loc[cold["model"] == "draft_0.8b", "ms"] -= graph
    (pair,) = fit_pairs(with_speedups(frame(forced(hybrid=hybrid))), cold, SETTINGS)
    assert pair.timed.token.tolist() == pytest.approx([STEP_MS] * 2)
    table = round_costs([pair])
    assert table["overhead_ms"].to_numpy() == pytest.approx(STEP_MS * made.OVERHEAD_COST - graph)


def test_where_rounds_are_replayed_every_pass_has_a_new_graph():
    times = pass_times().assign(first_ms=lambda rows: rows["ms"] * 1.5, sampled_ms=1.0)
    times.loc[times["outputs"] == "all", ["saved_ms", "restored_ms"]] = [2.0, 3.0]
    given = times, "moe_q4", "draft_0.8b", STEP_MS
    alike, replayed = (timed_parts(*given, replays=replays) for replays in (False, True))
    single = times.query("model == 'moe_q4' and n_tokens == 1")["ms"].tolist()
    assert alike.passes[1].tolist() == pytest.approx(single)
    assert replayed.passes[1].tolist() == pytest.approx([1.5 * ms for ms in single])
    assert alike.catchup.equals(replayed.catchup)  # whose width changes from round to round
    assert [one.sum() for one in (alike.saved, alike.restored)] == [0, 0]
    # Alone, a round takes its passes, a token's own time beside its pass, and the checkpoint.
    model = timed_costs(replayed, SETTINGS, replays=True)
    assert model.cost("overhead", 9).value == pytest.approx(1.0 + 2.0)
    assert model.cost("replay", 0).value == pytest.approx(3.0)
    # A draft model with a recurrent state is saved and restored in every round.
    times.loc[times["outputs"] == "last", ["saved_ms", "restored_ms"]] = [0.25, 0.5]
    assert timed_parts(*given, replays=False).saved.tolist() == pytest.approx([0.75] * 2)


@pytest.mark.parametrize(("tokens", "extrapolated"), [(35, False), (33, True)])
def test_a_round_that_no_run_holds_twice_is_extrapolated(tokens, extrapolated):
    runs = frame(row | {"generated": tokens} for row in forced(gammas=(4, 16), hybrid=False))
    (pair,) = pairs_of(runs)
    table = break_even([pair], pd.DataFrame()).set_index("gamma")["extrapolated"]
    assert table.to_dict() == {4: False, 16: extrapolated}


def test_drafting_is_what_runs_of_any_acceptance_logged_also_of_one_repeat_alone():
    other = [row for row in forced(gammas=(12,)) if row["repeat"] == 0 and row["gamma"]]
    other = [row | {"forced_acceptance": 0.5, "draft_ms": 3 * row["draft_ms"]} for row in other]
    [pair] = pairs_of(frame([*forced(gammas=(4, 8)), *other]))
    assert pair.model.knots["draft"] == (4, 8, 12)
    costs = [pair.model.cost("draft", gamma).value for gamma in (4, 8, 10, 12, 64)]
    assert costs == pytest.approx([STEP_MS * DRAFT_COST * factor for factor in (1, 1, 2, 3, 3)])
    assert pair.model.knots["overhead"] == (5, 9)  # where all was accepted
    assert np.isfinite(pair.model.without).all()


def test_overheads_are_fitted_to_shares_of_each_runs_time_and_of_rounds_that_were_run():
    rows = forced(repeats=1, gammas=(4,), hybrid=False)
    # Beside 13 rounds that are all accepted, 18.75 tokens, stand 62 of which nothing is, 90.6. They
    # take 0.1 of a token more than these, which take 0.1.
    for row in rows:
        row["decode_ms"] += (row["forced_acceptance"] == 0) * 62 * 0.1 * STEP_MS
    (pair,) = fit_pairs(with_speedups(frame(rows)), pass_times(repeats=1), SETTINGS)
    full, none = (13 / 18.75) ** 2, (62 / 96.8) ** 2
    overhead = STEP_MS * (full * 0.1 + none * 0.2) / (full + none)
    assert pair.model.cost("overhead", 5).value == pytest.approx(overhead)
    # In 64 tokens 62 are drafted at most.
    assert fitted(gammas=(4, 64)).model.knots["overhead"] == (5, 63)


def test_an_engine_whose_passes_were_not_timed_has_no_costs():
    times = pass_times().assign(engine="another")
    assert fit_pairs(with_speedups(frame(forced())), times, SETTINGS) == []


def test_predicted_intervals_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(5)
    exact = with_speedups(frame(real("B", "moe_q4", 8, 0.8, repeats=1)))
    truth = exact["speedup"].iloc[-1]
    held = []
    for _ in range(200):
        runs = frame(forced(repeats=3, noise=0.05, drift=0.05, generator=generator))
        times = pass_times(repeats=3, noise=0.05, generator=generator)
        pairs = fit_pairs(with_speedups(runs), times, SETTINGS)
        (found,) = predictions(pairs, exact, SETTINGS).to_dict("records")
        held.append(found["predicted_low"] <= truth <= found["predicted_high"])
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_replays_have_the_widths_of_what_was_accepted_but_for_whole_drafts():
    # Three rounds of 4: all, 1 and 2 accepted.
    counts = RunCounts(12, np.eye(5)[4] * 3, np.array([0, 1, 1, 0, 1]), replays=2)
    assert counts.replayed.tolist() == [0, 1, 1, 0]
    assert counts.single_steps == 0
    assert counts._replace(tokens=11).single_steps == 0  # a text that ends in a round
    assert counts._replace(replays_rejected=1).single_steps == 1


def test_costs_are_linear_between_widths_and_constant_beyond():
    knots = [1, 2, 4]
    assert shares([3], knots).tolist() == [0, 0.5, 0.5]
    assert shares([4], knots).tolist() == [0, 0, 1]
    assert shares([6], knots).tolist() == [0, 0, 1]
    assert shares([2, 3], knots, np.array([2.0, 4.0])).tolist() == [0, 4, 2]
    assert shares([6], []).tolist() == []


@pytest.mark.parametrize(
    "kept",
    [
        lambda row: row["forced_acceptance"] != 0,
        lambda row: row["forced_acceptance"] != 1,
        lambda row: row["draft"] != "none",
    ],
    ids=["all accepted", "nothing accepted", "no baselines"],
)
def test_what_the_costs_cannot_be_fitted_on_gives_no_model_and_empty_tables(kept):
    runs = frame(filter(kept, forced()))
    assert pairs_of(runs) == []
    predicted = predicted_of(runs)
    tables = [predicted, verification([], SETTINGS)]
    tables += [prediction_errors(predicted, pd.DataFrame()), break_even([], predicted)]
    assert all(table.empty for table in tables)


@pytest.mark.parametrize("hybrid", [True, False])
def test_settings_that_were_not_fitted_on_are_predicted(hybrid):
    runs = frame(
        [
            *forced(hybrid=hybrid),
            *real("B", "moe_q4", 4, 0.7, hybrid=hybrid),
            *real("G", "moe_q4", 8, 0.9, hybrid=hybrid),
            *real("D", "dense_4b", 4, 0.7),  # another pair
        ]
    )
    table = predicted_of(runs)
    assert table[["suite", "gamma"]].to_numpy().tolist() == [["B", 4], ["G", 8]]
    assert table["ratio"].to_numpy() == pytest.approx(1, abs=0.01)
    assert table["forced_acceptance"].isna().all()
    # The study's equations by hand.
    a, c = table["acceptance_rate"][0], DRAFT_COST
    assert table["equation_1"][0] == pytest.approx((1 - a**5) / ((1 - a) * (4 * c + 1)))
    assert table["equation_2"][0] == pytest.approx(4 / (4 * c + verify_cost(5)))


def test_errors_are_of_every_suite_and_of_all():
    table = pd.DataFrame(
        {
            "suite": ["B", "B", "G", "V"],
            "forced_acceptance": [np.nan, np.nan, np.nan, 0.5],
            "speedup": [1.0, 1.0, 2.0, 1.0],
            "ratio": [1.02, 0.9, 1.3, 2.0],
            "predicted_low": [0.9, 1.1, np.nan, 0.5],
            "predicted_high": [1.1, 1.2, np.nan, 1.5],
            "equation_1": 1.0,
            "equation_2": 3.0,
        }
    )
    curves = pd.DataFrame({"speedup": [2.0, np.nan], "timed": True, "predicted": [1.0, 3.0]})
    curves = curves.assign(predicted_low=0.5, predicted_high=1.5)
    found = prediction_errors(table, curves)
    [alone] = found.query("basis == 'passes'").to_dict("records")
    assert [alone[name] for name in ("settings", "bias", "inside")] == [1, pytest.approx(-0.5), 0]
    errors = found.query("basis == 'runs'").set_index(["suite", "forced"])
    counts = {("B", False): 2, ("G", False): 1, ("V", True): 1, (WHOLE, False): 3}
    assert errors["settings"].to_dict() == counts
    whole = errors.loc[(WHOLE, False)]
    assert whole["median"] == pytest.approx(0.1)
    assert whole["worst"] == pytest.approx(0.3)
    assert whole["bias"] == pytest.approx((1.02 * 0.9 * 1.3) ** (1 / 3) - 1)
    assert whole["median_2"] == pytest.approx(2.0)
    assert whole["inside"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("chance", "replays", "accepted", "tokens", "steps"),
    [
        (1.0, True, 4, 5, 4 * 0.1 + 2.1),
        (0.0, True, 0, 2, 4 * 0.1 + 2.1 + 1.5 + 0.3),
        # Without replays, the textbook's tokens.
        (0.6, False, (1 - 0.6**5) / 0.4 - 1, (1 - 0.6**5) / 0.4, 4 * 0.1 + 2.1),
    ],
)
def test_a_round_by_hand(chance, replays, accepted, tokens, steps):
    model = by_hand([4], [0.1], [1, 2, 5], [1, 1.5, 2.1], 0.3, replays=replays)
    found = model.expected(chance ** np.arange(1.0, 5))
    assert found[:2] == pytest.approx((accepted, tokens))
    assert found[2] @ model.costs == pytest.approx(steps)


def test_break_even_is_where_the_speedup_is_1():
    pair = fitted(repeats=1, hybrid=False)
    # A single block gives no interval.
    passes = verification([pair], SETTINGS)
    assert passes["pass_ms"].notna().all()
    assert passes[["pass_ms_low", "pass_ms_high"]].isna().all(axis=None)
    at = break_even([pair], pd.DataFrame()).set_index("gamma").loc[4]
    cost = 4 * DRAFT_COST + made.pass_cost(5)
    assert at["at_100"] == pytest.approx(5 / cost)
    assert at["at_0"] == pytest.approx(1 / cost)
    # Without replays all rounds cost the same: break-even is where a round yields what it costs.
    assert at["break_even"] == pytest.approx((cost - 1) / 4, abs=1e-3)
    assert at["speedup":"speedup_high"].isna().all()


@pytest.mark.parametrize(("cost", "rate"), [(5.1, np.nan), (0.9, 0.0)])
def test_a_round_that_costs_more_than_it_can_yield_never_pays_and_a_free_one_always(cost, rate):
    model = by_hand([4], [0.0], [1, 5], [1, cost], 0.0, replays=False)
    [row] = break_even([fitted()._replace(model=model)], pd.DataFrame()).to_dict("records")
    assert (row["at_0"], row["at_100"]) == pytest.approx((1 / cost, 5 / cost))
    assert row["break_even"] == pytest.approx(rate, nan_ok=True)
