"""Contenders: settings that are clearly beaten, and those that are never dropped."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.contenders import (
    Verdict,
    answer_so_far,
    beaten_by_prediction,
    beaten_in_first,
    compare_first,
    describe,
    select_arms,
)
from specmoe.config.block import Arm
from specmoe.config.schema import Statistics

from ...blocks import compared, drafted, row
from ...simulated_speedups import World

SETTINGS, MARGIN = Statistics(), 0.1
BLOCK = compared(arms=(Arm(), drafted(4), drafted(8)))


@pytest.mark.parametrize(
    ("speedups", "expected"),
    [
        ((1.3, 1.2, 0.9), [False, False, True]),  # by a rival
        ((0.9, 0.95, 0.5), [False, False, True]),  # by 1, but for what is not clear
        ((0.5, 0.4), [False, True]),  # of what is all beaten the best stays
        ((0.5,), [False]),
    ],
)
def test_what_is_clearly_beaten_in_the_first_repeat_leaves(speedups, expected):
    logs = np.log(speedups)[:, None] + 0.1 * np.linspace(-1, 1, 12)  # prompts differ alike
    assert beaten_in_first(logs, SETTINGS, MARGIN).tolist() == expected


def test_a_prediction_is_beaten_by_another_or_by_one_and_the_best_stays_without_others():
    def beaten(*speedups, others=False):
        means = np.log(speedups)
        return beaten_by_prediction(means, means - 0.16, means + 0.16, MARGIN, others=others)

    assert beaten(1.5, 1.2, 0.9).tolist() == [False, False, True]
    assert beaten(0.41, 0.4, 0.9).tolist() == [True, True, False]
    assert beaten(0.41, 0.4).tolist() == [False, True]
    assert beaten(0.41, 0.4, others=True).tolist() == [True, True]


def test_controls_and_forced_acceptance_are_not_compared():
    arms = [Arm(), drafted(4), drafted(8, share=0.5)]
    arms += [drafted(4, draft=name, draft_model=name) for name in ("target", "other")]
    block = compared(arms=tuple(arms))
    assert select_arms(block, {"other"}, {}) == [arms[1]]


def runs_of(speedups):
    """Return rows of a block whose γ have these speedups on each of six prompts."""
    rows = []
    for prompt, (gamma, speedup) in product(range(6), {0: 1.0, **speedups}.items()):
        own = {"run": f"g{gamma}/{prompt}", "gamma": gamma, "prompt": str(prompt), "suite": "B"}
        own |= {"block": "B/target/r0", "baseline": f"g0/{prompt}" if gamma else None}
        own |= {"tokens_per_second": 100.0 * speedup * (1 + prompt / 10)}
        rows.append(row("target", "draft" if gamma else "none", **own))
    return pd.DataFrame(rows).astype({"prompt_ms": float, "decode_ms": float})


@pytest.mark.parametrize(("high", "verdict"), [(1.4, Verdict.PREDICTED), (0.9, Verdict.CONTENDER)])
def test_a_prediction_is_believed_until_one_of_the_block_is_wrong(high, verdict):
    """A setting that was predicted at most at `high` runs at 1.3."""
    before = [
        {"setting": "B/target/draft/g4", "predicted": high, "predicted_low": 0.8}
        | {"predicted_high": high, "verdict": Verdict.CONTENDER},
        {"setting": "B/target/draft/g8", "predicted": 0.4, "verdict": Verdict.PREDICTED},
    ]
    rows = compare_first(BLOCK, BLOCK.arms[1:], runs_of({4: 1.3}), before, SETTINGS, MARGIN)
    assert [one["verdict"] for one in rows] == [Verdict.CONTENDER, verdict]
    assert rows[0]["speedup"] == pytest.approx(1.3)


def test_one_prompt_has_no_interval_and_nothing_is_beaten():
    runs = runs_of({4: 3.0, 8: 0.2})
    rows = compare_first(BLOCK, BLOCK.arms[1:], runs[runs["prompt"] == "0"], [], SETTINGS, MARGIN)
    assert {one["verdict"] for one in rows} == {Verdict.CONTENDER}
    assert [one["speedup"] for one in rows] == pytest.approx([3.0, 0.2])
    assert "speedup_low" not in rows[0]


def test_a_setting_that_fails_to_decode_is_neither_beaten_nor_compared():
    runs = runs_of({4: 3.0, 8: 1.0})
    asked = BLOCK, BLOCK.arms[1:]
    beaten = compare_first(*asked, runs, [], SETTINGS, MARGIN)
    assert [one["verdict"] for one in beaten] == [Verdict.CONTENDER, Verdict.FIRST]
    runs.loc[runs["gamma"] == 4, "decode_failures"] = 1
    kept = compare_first(*asked, runs, [], SETTINGS, MARGIN)
    assert {one["verdict"] for one in kept} == {Verdict.CONTENDER}


@pytest.mark.parametrize(("truth", "expected"), [(0.6, "off"), (1.0, "undecided"), (1.5, "on")])
def test_the_answer_so_far_is_seldom_wrong_among_many_settings(truth, expected):
    world = World(block=0.05, run=0.05, prompts=12, settings=29, session=0.03, own=0.0)
    logs = world.sample(np.random.default_rng(1), 400, [np.log(truth)] * 29).logs[:, :, 0]
    answers, counts = np.unique(answer_so_far(logs, SETTINGS), return_counts=True)
    found = dict(zip(answers, counts, strict=True))
    wrong = sum(found.get(one, 0) for one in {"on", "off"} - {expected})
    assert wrong <= 0.025 * 400 + 3 * np.sqrt(0.025 * 400)
    assert max(found, key=found.get) == expected


def test_a_stage_says_its_answer_by_labels_and_no_suite_where_there_is_one():
    block = compared(arms=(Arm(), drafted(4), drafted(8), drafted(16)))
    runs = runs_of({4: 1.5, 8: 0.5})
    rows = compare_first(block, block.arms[1:], runs, [], SETTINGS, MARGIN)
    rows[1]["speedup_high"] = 9.0
    labels = {one["setting"]: ("A 9B", f"a 0.8B, γ = {one['gamma']}") for one in rows}
    text = describe(rows, 1, labels).splitlines()
    best = "at best a 0.8B, γ = 4,"
    assert text[-1] == f"A 9B: so far on, {best} 1.50 [1.18, 1.90]; nothing is known of 1 setting"
    heads, first, *_ = text[3:]
    assert heads.split() == ["target", "setting", "predicted", "speedup", "verdict"]
    assert first == "A 9B    a 0.8B, γ = 4   –          1.50 [1.18, 1.90]     contender"
    assert "0.50 too few prompts  beaten in the first repeat" in text[5]
    rows = [{name: one[name] for name in one if "speedup" not in name} for one in rows]
    rows[0] |= {"predicted": 0.4, "predicted_low": 0.3, "predicted_high": 0.5}
    text = describe(rows, 0, labels).splitlines()
    assert text[-1] == f"A 9B: {best} 0.40 [0.30, 0.50]; nothing is predicted of 2 settings"
