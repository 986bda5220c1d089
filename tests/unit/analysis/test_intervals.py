"""Intervals that hold for many cells at once, or for other prompts."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.intervals import (
    bootstrap_interval,
    interval_over_prompts,
    joint_intervals,
)
from specmoe.config.schema import Statistics

SETTINGS = Statistics()


def pairs(logs):
    """Return speedups: rows of `logs` are blocks, columns prompts."""
    return pd.DataFrame(
        [
            {"block": f"r{repeat}", "prompt": f"p{prompt}", "speedup": np.exp(value)}
            for repeat, block in enumerate(logs)
            for prompt, value in enumerate(block)
        ]
    )


def test_the_interval_of_one_among_many_is_wider_than_its_own():
    generator = np.random.default_rng(0)
    cells = {str(n): pairs(generator.normal(0, 0.1, (5, 1))) for n in range(12)}
    joint = joint_intervals(cells, SETTINGS)
    own = {name: bootstrap_interval(members, SETTINGS) for name, members in cells.items()}
    assert all(joint[n].low <= own[n][0] and own[n][1] <= joint[n].high for n in cells)
    width = np.mean([np.log(joint[n].high / joint[n].low) for n in cells])
    assert width > 1.3 * np.mean([np.log(own[n][1] / own[n][0]) for n in cells])


def test_the_best_of_useless_settings_is_seldom_taken_for_a_gain():
    generator = np.random.default_rng(1)
    settings = Statistics()
    by_own, by_joint = 0, 0
    for _ in range(100):
        cells = {str(n): pairs(generator.normal(0, 0.05, (3, 1))) for n in range(8)}
        joint = joint_intervals(cells, settings)
        by_joint += any(interval.low > 1 for interval in joint.values())
        by_own += any(bootstrap_interval(members, settings)[0] > 1 for members in cells.values())
    assert by_own > 0.5 * 100
    assert by_joint < 0.1 * 100


def test_a_cell_of_one_block_has_no_interval_and_narrows_no_other():
    two = {"a": pairs([[0.0], [0.1], [0.2]]), "b": pairs([[0.0], [0.2], [0.1]])}
    more = joint_intervals(two | {"c": pairs([[0.5]])}, SETTINGS)
    assert np.isnan(more.pop("c")).all()
    assert more == joint_intervals(two, SETTINGS)
    assert np.isnan(joint_intervals({"c": pairs([[0.5]])}, SETTINGS)["c"]).all()


def test_prompts_that_gain_differently_widen_the_interval_for_other_prompts():
    alike, unlike = (pairs([row] * 3) for row in ([0.1] * 4, [-0.4, 0.0, 0.2, 0.6]))
    assert interval_over_prompts(alike, SETTINGS) == pytest.approx([np.exp(0.1)] * 2)
    low, high = interval_over_prompts(unlike, SETTINGS)
    assert low < 1 < high
    assert bootstrap_interval(unlike, SETTINGS) == pytest.approx([np.exp(0.1)] * 2)


def test_a_single_prompt_or_block_gives_no_interval_for_other_prompts():
    for logs in ([[0.1], [0.2]], [[0.1, 0.2]]):
        assert np.isnan(interval_over_prompts(pairs(logs), SETTINGS)).all()


def test_a_run_that_failed_is_left_out_of_its_block_alone():
    whole = pairs([[0.1, 0.1], [0.1, 0.1], [0.1, 0.1]])
    assert interval_over_prompts(whole.iloc[1:], SETTINGS) == pytest.approx([np.exp(0.1)] * 2)
