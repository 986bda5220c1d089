"""Which settings are worth measuring, and how often one that gains is missed."""

import math

import numpy as np
import pytest

from specmoe.analysis.gamma_curves import Predicted
from specmoe.analysis.shortlist import Setting, describe_shortlist, overlay_of, worth_measuring
from specmoe.config.load import load
from specmoe.config.matrix import comparison_of, list_blocks, setting_of
from specmoe.config.schema import Statistics
from specmoe.config.shortlist import alone_blocks, contenders

from ...conftest import ROOT
from ...planted_shortlists import CASES, count_answers, predictions_held
from ...planted_speedups import SPREADS

STATISTICS = Statistics(prediction_error=0.05)


@pytest.fixture
def config(study):
    study["suites"]["B"] |= {"methods": [{"method": "ngram-simple"}]}
    study["campaign"]["suites"] = ["A", "B", "F", "K"]
    return load(study, ROOT)


def setting(name, speedup, target="t"):
    low_high = (speedup, speedup) if speedup else ()
    return Setting(name, target, speedup and Predicted(speedup, *low_high, False))


# Of three settings: 2.39 deviations, times the square root of two between predictions.
LEAST = 1.5 * math.exp(-2.394 * 0.05 * math.sqrt(2))


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        pytest.param([("a", 1.5), ("b", LEAST * 1.01), ("c", LEAST * 0.99)], "ab", id="fastest"),
        pytest.param([("a", 0.6), ("b", 0.59), ("c", 0.3)], "a", id="the best where none gains"),
        pytest.param([("a", 0.95), ("b", 0.93)], "ab", id="what may gain"),
        pytest.param([("a", 2.0), ("b", 1.0, "other")], "ab", id="targets do not compete"),
        pytest.param([("a", 2.0), ("n", None)], "an", id="what is not predicted"),
    ],
)
def test_what_may_be_the_answer_is_measured(settings, kept):
    assert worth_measuring([setting(*one) for one in settings], STATISTICS) == set(kept)


def test_texts_answer_and_passages_and_controls_do_not(config):
    blocks = list_blocks(config, gpu=False)
    assert {block.suite for block in contenders(config, blocks)} == {"B"}
    alone = alone_blocks(config, contenders(config, blocks))
    assert [block.block for block in alone] == ["B/moe_q4/none/r0", "B/moe_q8/none/r0"]
    assert all(len(block.sides) == 1 and not block.speculates for block in alone)


def test_the_overlay_measures_what_is_worth_it_and_controls(config, study):
    blocks = list_blocks(config, gpu=False)
    names = {
        setting_of(block, side)
        for block in contenders(config, blocks)
        for side in block.sides
        if side.speculates
    }
    chosen = {name for name in names if "ngram" in name or name.endswith("2b/g8")}
    study["campaign"] |= overlay_of(config, blocks, chosen)
    left = list_blocks(load(study, ROOT), gpu=False)
    measured = {
        setting_of(block, side)
        for block in left
        for side in block.sides
        if side.speculates and block.suite == "B"
    }
    assert measured == chosen
    assert {block.suite for block in left} == {"B", "K"}
    assert {comparison_of(one.block) for one in left if one.suite == "K"} == {
        comparison_of(one.block) for one in blocks if one.suite == "K"
    }
    assert study["campaign"]["name"] == f"{config.campaign.name}-shortlist"


def test_the_text_names_every_setting_the_best_first():
    settings = [setting("B/t/d/g4", 0.5), setting("B/t/d/g8", 0.8), setting("B/t/n/g4", None)]
    text = describe_shortlist(settings, worth_measuring(settings, STATISTICS), 0.95)
    assert "2 of 3 settings are worth measuring" in text
    assert text.index("measure  0.80") < text.index("leave    0.50")
    assert "Nothing is predicted of 1 other" in text


def test_predicted_intervals_hold_what_errs_as_the_configuration_states():
    held = predictions_held(
        3,
        noise=0.02,
        error=Statistics().prediction_error,
        times=60,
        generator=np.random.default_rng(2),
    )
    assert 0.85 <= held < 1


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_answers_are_wrong_no_more_often_than_if_all_are_measured(shared):
    """Sixty campaigns a case; `interval_coverage.py --only shortlists` has more."""
    spread = SPREADS["synthetic D"]
    generator = np.random.default_rng(5)
    for case, truths in CASES.items():
        share = count_answers(spread, truths, shared=shared, times=60, generator=generator)
        assert share.measured <= 1
        assert share.lost <= 0.1
        if truths[0] > 0:
            assert share.off[1] <= 0.05
            assert abs(share.on[1] - share.on[0]) <= 0.15
        else:
            assert share.on[1] <= 0.1, case
            assert share.off[1] <= 0.1, case
