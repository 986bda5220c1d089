"""Intervals by hand; how often they hold the truth is in test_coverage.py."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from specmoe.analysis.intervals import (
    Session,
    block_mean,
    crossed_mean,
    log_means,
    mean_on_other_prompts,
    mean_speedup,
)


def pairs(logs):
    """Return speedups: rows of `logs` are blocks, columns prompts."""
    return pd.DataFrame(
        [
            {"block": f"r{repeat}", "prompt": f"p{prompt}", "speedup": np.exp(value)}
            for repeat, block_logs in enumerate(logs)
            for prompt, value in enumerate(block_logs)
        ]
    )


def test_an_interval_by_hand():
    # Blocks at 0, 0.1 and 0.2: mean 0.1, standard deviation 0.1, t 4.3027.
    reach = 4.3027 * 0.1 / np.sqrt(3)
    ends = mean_speedup(pairs([[-0.1, 0.1], [0.0, 0.2], [0.1, 0.3]])).interval(0.95)
    assert np.log(ends) == pytest.approx([0.1 - reach, 0.1 + reach], abs=1e-4)


def test_passes_through_the_prompts_do_not_narrow_an_interval():
    once = pairs([[0.0, 0.2], [0.1, 0.3], [0.3, 0.1]])
    twice = pd.concat([once.assign(**{"iteration": number}) for number in (0, 1)])
    for mean in (mean_speedup, mean_on_other_prompts):
        assert mean(twice).interval(0.95) == pytest.approx(mean(once).interval(0.95))


def test_the_best_of_several_has_bonferronis_level():
    mean = block_mean(np.array([0.0, 0.1, 0.2]))
    assert mean.reach(0.95, 8) == pytest.approx(stats.t.ppf(1 - 0.025 / 8, 2) * 0.1 / np.sqrt(3))


def test_another_session_is_added_once_and_not_multiplied_for_the_choice():
    mean = block_mean(np.array([0.0, 0.1, 0.2]))
    session, own = Session(0.04, 0.03), stats.norm.ppf(1 - 0.025 / 8) * 0.03
    assert session.reach == pytest.approx(stats.norm.ppf(0.98) * 0.05)
    for settings, reach in (
        (1, np.hypot(mean.reach(0.95), session.reach)),
        (8, np.hypot(mean.reach(0.95, 8), own) + Session(0.04).reach),
    ):
        assert mean.reach(0.95, settings, session) == pytest.approx(reach)


def test_arrays_have_the_intervals_of_their_parts():
    logs = np.random.default_rng(0).normal(0, 0.1, (4, 3, 5))
    for whole, part in ((crossed_mean, logs), (block_mean, logs.mean(axis=-1))):
        reach = whole(part).reach(0.95, 8)
        assert reach == pytest.approx([whole(one).reach(0.95, 8) for one in part])


def test_the_interval_for_other_prompts_by_hand():
    # Blocks at -0.1, 0, 0.1 and prompts at -0.3, 0, 0.3 add up, so the rest is 0: MS of blocks
    # 3 x 0.01 and of prompts 3 x 0.09, over 9; Satterthwaite's degrees (0.3 / 0.27)^2 x 2 / ...
    logs = np.add.outer([-0.1, 0.0, 0.1], [-0.3, 0.0, 0.3])
    degrees = 0.3**2 / (0.03**2 / 2 + 0.27**2 / 2)
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(0.3 / 9)
    assert np.log(mean_on_other_prompts(pairs(logs)).interval(0.95)) == pytest.approx(
        [-reach, reach]
    )


def test_a_single_block_gives_no_interval_and_a_single_prompt_none_for_other_prompts():
    assert np.isnan(mean_speedup(pairs([[0.5]])).interval(0.95)).all()
    for logs in ([[0.1], [0.2]], [[0.1, 0.2]]):
        assert np.isnan(mean_on_other_prompts(pairs(logs)).interval(0.95)).all()


def test_a_prompt_that_a_block_lacks_is_excluded_for_other_prompts():
    whole = pairs([[0.5, 0.1, 0.2], [0.6, 0.1, 0.3], [0.7, 0.2, 0.1]])
    lacking = whole.drop(index=0)
    complete = whole[whole["prompt"] != "p0"]
    expected = mean_on_other_prompts(complete).interval(0.95)
    assert mean_on_other_prompts(lacking).interval(0.95) == pytest.approx(expected)
    assert np.isnan(mean_on_other_prompts(lacking[lacking["prompt"] != "p1"]).interval(0.95)).all()
    each = whole.drop(index=[0, 4, 8])  # each prompt lacks in a block
    assert np.isnan(mean_on_other_prompts(each).interval(0.95)).all()


def test_a_block_that_lacks_a_pair_stands_where_its_other_prompts_put_it():
    # Blocks at 0, 0.1, 0.2; prompts at −0.5, 0, 0.5, without noise.
    full = pairs([[block + prompt for prompt in (-0.5, 0.0, 0.5)] for block in (0.0, 0.1, 0.2)])
    lacking = full.drop(index=[2, 3])
    assert log_means(lacking).tolist() == pytest.approx([0.0, 0.1, 0.2])
    assert mean_speedup(lacking).interval(0.95) == pytest.approx(mean_speedup(full).interval(0.95))
    # The plain mean of the first block would be that of its slower prompts.
    assert np.log(lacking["speedup"]).groupby(lacking["block"]).mean().iloc[0] == pytest.approx(
        -0.25
    )


def test_blocks_that_share_no_prompt_keep_their_plain_means():
    apart = pairs([[0.1, 0.3], [0.2, 0.4]]).iloc[[0, 3]]
    assert log_means(apart).tolist() == pytest.approx([0.1, 0.4])
