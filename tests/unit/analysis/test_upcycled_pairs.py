"""Speedups of an upcycled MoE next to its dense counterpart, as simulated."""

import math

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.templates import text_of_experiment
from specmoe.analysis.upcycled_pairs import compare_passes, steps_to
from specmoe.analysis.views import experiment
from specmoe.config.models import UpcycleModel
from specmoe.config.schema import Statistics
from specmoe.models.info import Size

from .. import paper_analyses as made
from ..paper_analyses import DENSE, MOE, SINGLE, pairs_of, runs_of_pair, times_of_pair


def test_the_ratio_of_speedups_is_paired_by_prompt_and_repeat():
    """What a repeat does to both cancels, however much it is."""
    runs = runs_of_pair({DENSE: 1.2, MOE: 0.9})
    runs["tokens_per_second"] /= 1 + 3 * runs["repeat"] * (runs["draft"] != "none")
    [row] = pairs_of(runs).to_dict("records")
    assert (row["dense"], row["target"], row["gamma"]) == (DENSE, MOE, 4)
    assert [row[f"ratio{end}"] for end in ("", "_low", "_high")] == pytest.approx([0.75] * 3)
    assert row["speedup"] / row["dense_speedup"] == pytest.approx(0.75)
    assert row["speedup_low"] < 0.5 * row["speedup"]
    assert (row["prompts"], row["pairs"], row["repeats"]) == (2, 6, 3)
    assert (row["acceptance_rate"], row["dense_acceptance"]) == (0.5, 0.5)
    assert row["same_tokens"] == 1


def upcycled(experts, router=None, source=DENSE, used=1):
    given = {"source": source, "experts": experts, "router": router, "used": used}
    return UpcycleModel(kind="upcycle", **given)


def test_an_moe_is_compared_with_the_measured_model_that_has_most_in_common_with_it():
    models = {
        "one": upcycled(1),
        "same": upcycled(8, "constant"),
        "eight": upcycled(8),
        "two used": upcycled(8, used=2),
        "other": upcycled(8, source="small"),
        "not measured": upcycled(4),
    }
    assert steps_to(models, {*models, DENSE}) == {
        "one": (DENSE, "kernel"),
        "same": ("one", "file"),
        "eight": ("same", "experts"),
        "two used": ("one", "file and experts"),
        "other": ("small", "kernel and file and experts"),
        "not measured": ("one", "file and experts"),
    }
    assert steps_to(models, {DENSE, "one"})["eight"] == ("one", "file and experts")
    assert steps_to(models, {DENSE})["eight"] == (DENSE, "kernel and file and experts")


def test_a_step_is_the_ratio_of_speedups_to_the_model_before_where_both_were_measured():
    runs = runs_of_pair({DENSE: 1.2, SINGLE: 1.0, MOE: 0.8})
    rows = pairs_of(runs).set_index("target")
    assert rows["ratio"].to_dict() == pytest.approx({SINGLE: 1.0 / 1.2, MOE: 0.8 / 1.2})
    assert rows["step_ratio"].to_dict() == pytest.approx({SINGLE: 1.0 / 1.2, MOE: 0.8})
    decided = runs[(runs["target"] != SINGLE) | (runs["repeat"] < 2)].copy()
    assert pairs_of(decided).set_index("target").loc[MOE, "step_ratio"] == pytest.approx(0.8)
    # Steps multiply, whatever each model lacks.
    decided["tokens_per_second"] = runs["tokens_per_second"] * np.linspace(1, 2, len(runs)) ** 3
    noisy = pairs_of(decided.drop([3])).set_index("target")
    assert noisy["step_ratio"].prod() == pytest.approx(noisy.loc[MOE, "ratio"])
    [alone] = pairs_of(runs_of_pair({DENSE: 1.2, MOE: 0.8})).to_dict("records")
    assert np.isnan(alone["step_ratio"])


def test_the_experiment_is_told_step_by_step_at_the_longest_drafts():
    found = experiment(made.with_experiment())
    assert (found["target"], found["gamma"], found["same_tokens"]) == (MOE, 4, 1)
    assert [(row["target"], row["step"]) for row in found["steps"]] == [
        (SINGLE, "kernel"),
        (MOE, "file and experts"),
    ]
    assert [row["step_ratio"] for row in found["steps"]] == pytest.approx([0.8, 0.5])
    assert (found["dense_speedup"], found["speedup"]) == pytest.approx((1.0, 0.4))
    assert not experiment(made.with_upcycled_pairs())  # nothing between them was measured
    text = text_of_experiment(found)
    assert "is 0.40 [0.40, 0.40] times the dense model's: 0.80 [0.80, 0.80] for the kernel" in text
    assert "× 0.50 [0.50, 0.50] for 256 experts in the file and for passes that read" in text
    assert text_of_experiment({}) == ""


def test_several_draft_lengths_also_have_a_row_together():
    runs = runs_of_pair({DENSE: 1.0, MOE: 0.5}, gammas=(2, 4))
    runs["tokens_per_second"] *= 1 + ((runs["target"] == MOE) & (runs["gamma"] == 4))
    rows = pairs_of(runs)
    assert rows["gammas"].tolist() == ["2", "4", "2, 4"]
    assert rows["ratio"].tolist() == pytest.approx([0.5, 1.0, math.sqrt(0.5)])
    assert rows["gamma"].isna().tolist() == [False, False, True]


def test_only_what_both_have_is_compared():
    runs = runs_of_pair({DENSE: 1.2, MOE: 0.9})
    lacking = runs[(runs["target"] == MOE) | (runs["prompt"] == "code")]
    assert pairs_of(lacking)["pairs"].tolist() == [3]
    assert pairs_of(runs[runs["target"] == MOE]).empty
    assert pairs_of(runs_of_pair({DENSE: 1.2})).empty


def test_unlike_tokens_and_acceptance_are_reported():
    runs = runs_of_pair({DENSE: 1.2, MOE: 0.9})
    other = (runs["target"] == MOE) & (runs["prompt"] == "letter")
    runs.loc[other, "accepted"] = 10
    runs["tokens"] = [[9] if differs else [1] for differs in other]
    [row] = pairs_of(runs).to_dict("records")
    assert row["same_tokens"] == 0.5
    assert (row["acceptance_rate"], row["dense_acceptance"]) == (0.375, 0.5)


def test_forced_acceptance_is_a_row_of_its_own_whose_tokens_say_nothing():
    [row] = pairs_of(runs_of_pair({DENSE: 1.2, MOE: 0.6}, forced=0.5)).to_dict("records")
    assert (row["forced_acceptance"], row["ratio"]) == (0.5, pytest.approx(0.5))
    assert np.isnan(row["same_tokens"])


def passes_of(times, bandwidth=made.BANDWIDTH):
    sizes = made.PAIR_SIZES | {"another": Size(10**8, 1e8, 0, 0, 0, 2)}
    tokens = {("current-cpu", DENSE): 10.0, ("current-cpu", MOE): 12.0}
    return compare_passes(times, tokens, made.DENSE_OF, sizes, bandwidth, Statistics())


def test_the_cost_of_passes_is_in_tokens_of_the_server_and_over_the_dense_models():
    times = times_of_pair({DENSE: {1: 10, 5: 15}, MOE: {1: 12, 5: 36}, "another": {1: 5, 5: 5}})
    of_moe = (times["model"] == MOE) & (times["n_tokens"] == 5)
    times["layers"] = pd.Series([[2.0, 4.0] if one else None for one in of_moe])
    rows = passes_of(times).set_index(["model", "n_tokens"])
    # The one without a counterpart and without a baseline.
    alone = {("another", 1), ("another", 5)}
    tokens = (rows["ms"] / rows["of_token"]).dropna().to_dict()
    assert tokens == pytest.approx({(DENSE, 1): 10, (DENSE, 5): 10, (MOE, 1): 12, (MOE, 5): 12})
    assert rows.loc[[(DENSE, 5), (MOE, 5)], "of_single"].tolist() == pytest.approx([1.5, 3])
    assert {*rows.index[rows["ratio"].isna()]} == {*rows.index[rows["dense"].isna()]} == alone
    assert rows.loc[(MOE, 5), ["ratio", "ratio_low"]].tolist() == pytest.approx([2.4, 2.4])
    assert rows.loc[(MOE, 5), "experts"] == 3
    even = rows.loc[(MOE, 5), "experts_even"]
    assert rows.loc[(MOE, 5), "of_even"] == pytest.approx(3 / even)
    assert rows.loc[(MOE, 5), "layers"] == pytest.approx([2 / even, 4 / even])
    assert rows.loc[(MOE, 5), "experts_even"] == pytest.approx(4 * (1 - 0.75**5))
    assert rows.loc[(DENSE, 5), ["experts", "experts_even"]].isna().all()


def test_the_share_of_reading_is_that_of_the_bytes_that_a_pass_reads_at_the_bandwidth():
    """A gigabyte takes a millisecond; a model that a cache may hold has no share."""
    times = times_of_pair(
        {DENSE: {1: 10, 5: 15}, MOE: {1: 10, 5: 30}, "another": {1: 5}}, repeats=2
    )
    shares = passes_of(times.assign(ms=times["ms"] / (1 + times["repeat"])))
    shares = shares.set_index(["model", "n_tokens"])
    experts = 9 * (1 - 0.75**5)
    assert shares["bound_share"].dropna().to_dict() == pytest.approx(
        {(DENSE, 1): 0.4, (DENSE, 5): 4 / 15, (MOE, 1): 0.325, (MOE, 5): (1 + experts) / 30}
    )
    assert shares.loc[(MOE, 5), "read_bytes"] == pytest.approx(1e9 * (1 + experts))
    assert shares["bound_share_low"].equals(shares["bound_share"])
    assert passes_of(times, None)["bound_share"].isna().all()
