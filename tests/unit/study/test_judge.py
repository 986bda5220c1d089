"""Each claim gives every verdict that it can; the published rows have verdicts with reasons."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.intervals import Estimate, student_quantile
from specmoe.analysis.registry import TABLES
from specmoe.study.headline import CLAIMS, CONSTRUCTED, _gains_more
from specmoe.study.judge import Comparison, Outcome, conclude, judge_claims

from ..paper_analyses import MODELS, baseline_runs, costed, full, settings_of, speculative_runs

SUPPORTED, IMPOSSIBLE_ROWS, CONTRADICTED, INCONCLUSIVE, NOT_TESTABLE = Outcome


def model(like, **changed):
    """Return a model that differs from one of MODELS."""
    return MODELS[MODELS["model"] == like].assign(**changed)


ALL_MODELS = pd.concat(
    [
        MODELS,
        model("dense_4b", model="dense_9b", label="Dense 9B", parameters_total=9_000_000_000,
              parameters_active=9_000_000_000, size_bytes=18_000_000_000),
        model("moe_q4", model="moe_q8", label="MoE Q8", size_bytes=38_000_000_000),
        model("draft_0.8b", model="draft_0.8b_bf16", size_bytes=1_500_000_000),
        model("dense_4b", model="dense_4b_q4", size_bytes=2_500_000_000),
    ],
    ignore_index=True,
)  # fmt: skip


def blocks_of(ends):
    """Return the rates of two blocks whose 95 % interval has these ends; one rate is one block."""
    middle, reach = np.log(ends).mean(), np.ptp(np.log(ends)) / 2
    # Two blocks at a distance d from their mean: Student's t with one degree of freedom, times d.
    distance = reach / student_quantile(1, 0.95)
    return [float(np.exp(middle + arm * distance)) for arm in (-1, 1)][: len(ends)]


def setting(target, draft, gamma, *ends, prompt="code", accepted=None, suite="moe_speculative"):
    """Return a setting's runs by the ends of its interval; half of 10 γ tokens are accepted."""
    runs = speculative_runs(suite, target, draft, gamma, blocks_of(ends), prompt)
    return [run if accepted is None else run | {"accepted": accepted} for run in runs]


def alone(target, *ends):
    """Return runs without speculation, by the ends of their interval."""
    rates = blocks_of(ends)
    runs = baseline_runs([target], ["passage-64"], len(rates))
    return [
        run | {"suite": "moe_baseline", "block": f"A{run['block']}", "run": f"A{run['run']}"}
        | {"tokens_per_second": rate}
        for run, rate in zip(runs, rates, strict=True)
    ]  # fmt: skip


def campaign(*groups, **tables):
    """Return the analysis of groups of rows, and baselines at 50 tok/s that they are paired with.

    `tables` replace its own.
    """
    rows = [row for group in groups for row in group]
    drafted = [row for row in rows if row["draft"] != "none"]
    targets, prompts = ({row[key] for row in drafted} for key in ("target", "prompt"))
    repeats = max((int(row["block"].rpartition("/")[2]) + 1 for row in drafted), default=1)
    rows = [*baseline_runs(sorted(targets), sorted(prompts), repeats), *rows]
    return replace(settings_of(rows), **({"models": ALL_MODELS} | tables))


def judged(analysis, claim):
    """Return what an analysis, all of one way, says of a claim."""
    [row] = judge_claims({claim: CLAIMS[claim]}, analysis).to_dict("records")
    return row


def with_flagged(analysis, count, column="impossible", **setting):
    """Return an analysis whose audit flags so many runs of each of some settings."""
    flagged = analysis.flagged.copy()
    flagged.loc[(flagged[list(setting)] == pd.Series(setting)).all(axis=1), column] = count
    return replace(analysis, flagged=flagged)


SMALL, LARGE, SAME = "draft_0.8b", "draft_2b", "draft_0.8b_bf16"
SAME_AS_TARGET = "dense_4b_q4"
# Settings by γ and the ends of their intervals.
TARGETS = ("moe_q4", "moe_q8", "dense_4b", "dense_9b")
moe, moe_q8, dense_4b, dense_9b = (partial(setting, one, SMALL) for one in TARGETS)
moe_2b = partial(setting, "moe_q4", LARGE)
MOE = moe(4, 60, 62)  # 1.20 to 1.24
DENSE = dense_4b(4, 60, 62)


def curve(*rates_by_gamma, draft=SMALL):
    """Return settings at γ = 4, 8, ... by their rates."""
    return [
        run
        for step, rates in enumerate(rates_by_gamma)
        for run in setting("moe_q4", draft, 4 * 2**step, *rates)
    ]


def by_mtp(*ends):
    """Return the runs of a setting that no draft model drafts in."""
    way = {"method": "draft-mtp", "draft_model": None}
    return [run | way for run in setting("moe_q4", "mtp", 4, *ends)]


SWEEP = {"prompt": "passage-64", "suite": "prompt_length"}
SWEPT = moe(8, 50, 51, **SWEEP)
ACCEPTED = moe(4, 60, accepted=1)  # 2.5 %

CASES = {
    "moe_gain": [
        (SUPPORTED, [MOE]),
        (CONTRADICTED, [moe(4, 70, 72)]),
        (INCONCLUSIVE, [moe(4, 58, 62)]),
        (NOT_TESTABLE, [DENSE]),
        # 1.176 to 1.178 rounds to the 1.18 that was printed.
        (SUPPORTED, [moe(4, 58.8, 58.9)]),
        # Nothing is claimed of a target with options of the engine, nor of other drafting methods.
        (SUPPORTED, [MOE, setting("moe_q4+poll=0", SMALL, 4, 50, 51), by_mtp(40, 41)]),
        (NOT_TESTABLE, [by_mtp(40, 41)]),
        # Lengths count where no text was sent.
        (SUPPORTED, [MOE, SWEPT]),
        (CONTRADICTED, [SWEPT]),
    ],
    "moe_gain_small_draft": [
        (SUPPORTED, [moe(8, 60, 62), moe_2b(8, 50, 51), moe(4, 50, 51)]),
        (CONTRADICTED, [moe(8, 60, 62), moe(16, 70, 72)]),
        (NOT_TESTABLE, [MOE]),
    ],
    "acceptance_low": [
        (SUPPORTED, [ACCEPTED, SWEPT]),
        (CONTRADICTED, [MOE]),  # 50 %
        # A target accepts nearly all that its own network drafts in another type.
        (NOT_TESTABLE, [setting("dense_4b", SAME_AS_TARGET, 4, 50, 51)]),
        (SUPPORTED, [ACCEPTED, setting("dense_4b", SAME_AS_TARGET, 4, 50, 51)]),
    ],
    "acceptance_low_everywhere": [
        (SUPPORTED, [ACCEPTED]),
        (CONTRADICTED, [ACCEPTED, SWEPT]),
        (NOT_TESTABLE, [by_mtp(40, 41)]),
    ],
    "gain_without_acceptance_moe": [
        (SUPPORTED, [moe(4, 60, 62, accepted=1)]),  # 1.1 tokens a round
        (CONTRADICTED, [MOE]),  # 3 tokens a round
        (NOT_TESTABLE, [DENSE]),
    ],
    "checking_is_sublinear": [
        (SUPPORTED, [MOE]),  # 3 / 1.22 = 2.5 of 5
        # 3 / 0.5 = 6, and drafting may be the cause.
        (INCONCLUSIVE, [moe(4, 20, 25)]),
        (NOT_TESTABLE, [alone("moe_q4", 50, 51)]),
    ],
    "rises_with_gamma": [
        (SUPPORTED, [curve([50, 51], [52, 53], [54, 55])]),
        (CONTRADICTED, [curve([50, 51], [60, 61], [55, 56])]),
        (NOT_TESTABLE, [MOE]),
    ],
    "best_configuration": [
        (SUPPORTED, [curve([50, 51], [60, 61]), curve([40, 41], [50, 51], draft=LARGE)]),
        (CONTRADICTED, [curve([50, 51], [60, 61]), curve([70, 71], [50, 51], draft=LARGE)]),
        (NOT_TESTABLE, [curve([50, 51], [60, 61])]),
        # The same network in another type is no smaller draft model.
        (NOT_TESTABLE, [curve([50, 51], [60, 61]), curve([40, 41], [50, 51], draft=SAME)]),
    ],
    "smaller_draft_gains_more": [
        (SUPPORTED, [MOE, moe_2b(4, 50, 52)]),
        (CONTRADICTED, [MOE, moe_2b(4, 63, 64)]),
        (NOT_TESTABLE, [MOE, moe_2b(8, 50, 52)]),
        (NOT_TESTABLE, [MOE, setting("moe_q4", SAME, 4, 50, 51)]),
    ],
    "between_at_best": [
        (SUPPORTED, [MOE, dense_4b(4, 50, 51), dense_9b(4, 70, 71)]),
        (CONTRADICTED, [MOE, dense_4b(4, 50, 51), dense_9b(4, 55, 56)]),
        (NOT_TESTABLE, [MOE, DENSE]),
    ],
    "gain_follows_total": [
        (SUPPORTED, [MOE, dense_4b(4, 50, 51)]),
        (CONTRADICTED, [MOE, dense_9b(4, 70, 71)]),
        (NOT_TESTABLE, [MOE, moe_q8(4, 70, 71)]),
    ],
    "gain_ignores_active": [
        # An MoE of 3 B active parameters gains more than a dense model of 4 B.
        (SUPPORTED, [MOE, dense_4b(4, 50, 51)]),
        (CONTRADICTED, [MOE, dense_4b(4, 70, 71)]),
        (NOT_TESTABLE, [MOE]),
        # One pair out of order is enough.
        (SUPPORTED, [MOE, dense_4b(4, 50, 51), dense_9b(4, 70, 71)]),
    ],
    "lengths_gain": [
        *((verdict, [moe(4, *ends, **SWEEP)]) for verdict, ends in [
            (SUPPORTED, (60, 62)), (CONTRADICTED, (70, 72)), (INCONCLUSIVE, (58, 62)),
        ]),
        (NOT_TESTABLE, [MOE]),
    ],
}  # fmt: skip
# 20.6 GB a token, 50 to 60 a second: 1030 to 1236 GB/s.
BANDWIDTHS = {800: CONTRADICTED, 960: INCONCLUSIVE, 2000: INCONCLUSIVE, None: NOT_TESTABLE}


@pytest.mark.parametrize(
    ("claim", "verdict", "groups"),
    [(name, *case) for name, cases in CASES.items() for case in cases],
)
def test_a_claim_has_the_verdict_of_its_intervals(claim, verdict, groups):
    assert judged(campaign(*groups), claim)["verdict"] == verdict


@pytest.mark.parametrize(("gigabytes", "verdict"), BANDWIDTHS.items())
def test_rates_are_compared_with_the_machines_bandwidth(gigabytes, verdict):
    bandwidth = {"machine_memory_bandwidth_bytes_per_second": (gigabytes or float("nan")) * 1e9}
    analysis = campaign(alone("moe_q4", 50, 60), campaign=full().campaign.assign(**bandwidth))
    row = judged(analysis, "moe_reads_its_file")
    assert (row["verdict"], row["runs"]) == (verdict, 2 if gigabytes else 0)
    # Passes over one token decide where no baseline was measured alone.
    ms = {"ms": 18.0, "ms_low": 17.0, "ms_high": 20.0}
    timed = dict.fromkeys(TABLES["pass_times"].columns) | {"model": "moe_q4", "n_tokens": 1} | ms
    passes = pd.DataFrame([timed | {"engine": MOE[0]["engine"]}])
    of_passes = replace(campaign(MOE), pass_times=passes, campaign=analysis.campaign)
    row = judged(of_passes, "moe_reads_its_file")
    assert (row["verdict"], row["runs"]) == (verdict, 0)
    cached = replace(analysis, models=ALL_MODELS.assign(in_cache=True))
    assert judged(cached, "moe_reads_its_file")["runs"] == 0


def test_the_sentence_counts_what_holds_and_names_what_decides():
    row = judged(campaign(MOE, moe_2b(4, 50, 51), moe_2b(8, 52, 53)), "moe_gain")
    assert row["why"] == "Settings that agree: 1 of 3. MoE Q4, Draft 2B, γ = 4: 1.01 [1.01, 1.01]"
    row = judged(campaign(moe(4, 60)), "moe_gain")
    assert row["verdict"] == INCONCLUSIVE
    assert row["why"].startswith("Settings that agree: 1 of 1, and their intervals leave it open.")
    assert "1.20 (one block, no interval)" in row["why"]


@pytest.mark.parametrize(
    ("rate", "ends", "verdict"),
    [
        (0.02, (0.2, 0.19, 0.21), CONTRADICTED),
        (0.02, (1.2, 1.1, 1.3), SUPPORTED),
        (0.3, (0.2, 0.19, 0.21), NOT_TESTABLE),  # more than next to nothing
    ],
)
def test_where_next_to_nothing_was_accepted_by_force_the_speedup_decides(rate, ends, verdict):
    made = costed().predictions.query("target == 'moe_q4'").head(1)
    rates = dict.fromkeys(("forced_acceptance", "acceptance_rate"), rate)
    made = made.assign(**rates, **Estimate(*ends).columns("speedup"))
    row = judged(replace(campaign(DENSE), predictions=made), "gain_without_acceptance_moe")
    assert row["verdict"] == verdict
    if verdict == CONTRADICTED:
        assert row["why"].endswith("made to accept 2.0 %: 0.20 [0.19, 0.21]")


@pytest.mark.parametrize(("took", "verdict"), [(3.0, SUPPORTED), (30.0, CONTRADICTED)])
def test_passes_timed_by_themselves_decide_what_checking_costs(took, verdict):
    columns = dict.fromkeys(TABLES["pass_times"].columns)
    ends = {"of_single": took, "of_single_low": took - 0.1, "of_single_high": took + 0.1}
    timed = columns | {"model": "moe_q4", "engine": MOE[0]["engine"], "n_tokens": 5} | ends
    # Those of another engine decide nothing here.
    passes = pd.DataFrame([timed, timed | {"engine": "another", "of_single": 10.0}])
    row = judged(replace(campaign(MOE), pass_times=passes), "checking_is_sublinear")
    assert (row["verdict"], row["comparisons"]) == (verdict, 1)
    assert f"a pass over 5 tokens takes the time of {took:.2f}" in row["why"]


def test_two_settings_are_compared_in_each_repeat():
    # Both are faster in the first of two repeats; the smaller draft model by 1.1 in either.
    small, large = setting("moe_q4", SMALL, 4, 44, 77), setting("moe_q4", LARGE, 4, 40, 70)
    row = judged(campaign(small, large), "smaller_draft_gains_more")
    assert row["verdict"] == SUPPORTED
    assert (
        "1.16 [0.88, 1.54], MoE Q4, Draft 2B, γ = 4: 1.06 [0.80, 1.40]; ratio 1.10 [1.10, 1.10]"
        in row["why"]
    )


def test_two_settings_that_gain_the_same_are_told_apart_no_oftener_than_the_level_says():
    rng, repeats = np.random.default_rng(3), 3
    row, own = MOE[0] | {"draft_label": "", "label": "", "speedup": 1.0}, campaign(MOE)
    drifts, noise = rng.normal(0, 0.1, (2000, 1, repeats)), rng.normal(0, 0.02, (2000, 2, repeats))
    ends = {"speedup_low": 0.9, "speedup_high": 1.1}
    margins = [
        _gains_more(own, *(row | ends | {"log_speedups": [*logs]} for logs in both)).margin
        for both in drifts + noise
    ]
    assert abs(np.mean([not margin.low <= 0 <= margin.high for margin in margins]) - 0.05) < 0.015
    # What a repeat does to both is in neither: intervals of each alone are five times as wide.
    assert np.median([margin.high - margin.low for margin in margins]) < 0.15


def test_two_files_of_one_network_are_no_two_models():
    of_one = ALL_MODELS.assign(parameters_total=4_000_000_000)
    targets = [MOE, dense_4b(4, 50, 51), dense_9b(4, 70, 71)]
    row = judged(campaign(*targets, models=of_one), "between_at_best")
    assert row["verdict"] == NOT_TESTABLE
    assert row["why"] == "one network stands for both the dense 4B and the dense 9B"
    # Nor is an MoE that has no more than a router more than its dense counterpart.
    with_router = [4.01e9 if family == "moe" else 4e9 for family in ALL_MODELS["family"]]
    router = ALL_MODELS.assign(parameters_total=with_router, parameters_active=with_router)
    for claim in ("gain_follows_total", "gain_ignores_active"):
        assert judged(campaign(*targets, models=router), claim)["verdict"] == NOT_TESTABLE


def test_a_verdict_counts_the_runs_it_rests_on_and_those_the_audit_flags():
    analysis = campaign(MOE, moe_2b(4, 60, 62), DENSE, SWEPT)
    analysis = with_flagged(analysis, 1, "flagged", target="moe_q4", draft=LARGE)
    analysis = with_flagged(analysis, 2, "flagged", target="dense_4b")
    row = judged(analysis, "moe_gain")
    assert (row["verdict"], row["flagged"], row["runs"]) == (SUPPORTED, 1, 4)


def between(low, high):
    """Return a comparison whose margin has this interval."""
    return Comparison(Estimate((low + high) / 2, low, high), "", ())


@pytest.mark.parametrize(
    ("some", "margins", "verdict"),
    [
        (False, [(1, 2), (1, 2)], SUPPORTED),
        (False, [(1, 2), (-1, 2)], INCONCLUSIVE),
        (False, [(-2, -1), (-1, 2)], CONTRADICTED),
        (True, [(-2, -1), (1, 2)], SUPPORTED),
        (True, [(-2, -1), (-1, 2)], INCONCLUSIVE),
        (True, [(-2, -1), (-2, -1)], CONTRADICTED),
        (False, [(0, 0)], CONTRADICTED),  # at the bound
    ],
)
def test_a_claim_needs_all_of_its_comparisons_or_some(some, margins, verdict):
    found, _ = conclude([between(*ends) for ends in margins], 0.95, 1000, some=some)
    assert found == verdict


@pytest.mark.parametrize("some", [False, True])
def test_luck_decides_a_claim_no_oftener_than_its_level_says(some):
    rng, degrees, numbers = np.random.default_rng(1), 2, 12
    reach = student_quantile(degrees, 0.95)
    # Every number is at its bound, so the claim is neither true nor false by a margin.
    drawn = rng.standard_t(degrees, (4000, numbers))
    verdicts = [
        conclude([between(t - reach, t + reach) for t in row], 0.95, degrees, some=some)[0]
        for row in drawn
    ]
    for verdict in (SUPPORTED, CONTRADICTED):
        assert np.mean([found == verdict for found in verdicts]) < 0.025 + 0.005
    # Without that, one of 12 would contradict a claim on all of them in every fourth case.
    assert 0.2 < np.mean((drawn < -reach).any(axis=1)) < 0.3


def test_support_by_impossible_rows_is_no_support():
    analysis = campaign(MOE, moe_2b(4, 60, 62))
    assert judged(analysis, "moe_gain")["verdict"] == SUPPORTED
    assert judged(with_flagged(analysis, 1, draft=LARGE), "moe_gain")["verdict"] == IMPOSSIBLE_ROWS
    # What such rows contradict they contradict.
    faster = with_flagged(campaign(moe(4, 70, 72)), 1, draft=SMALL)
    assert judged(faster, "moe_gain")["verdict"] == CONTRADICTED
    # They may be spare.
    some = campaign(MOE, DENSE, dense_9b(4, 50, 51))
    for one in (some, with_flagged(some, 1, target="dense_4b")):
        assert judged(one, "gain_ignores_active")["verdict"] == SUPPORTED


@pytest.mark.parametrize("claim", ["acceptance_low", "acceptance_low_everywhere"])
def test_acceptance_of_models_made_for_it_decides_nothing(claim):
    made = campaign(ACCEPTED, DENSE, models=ALL_MODELS.assign(constructed=True))
    row = judged(made, claim)
    assert (row["verdict"], row["why"]) == (NOT_TESTABLE, CONSTRUCTED)
    assert judged(made, "moe_gain")["verdict"] != NOT_TESTABLE
