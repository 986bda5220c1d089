"""Intervals by hand; how often they hold the truth is in test_coverage.py."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from specmoe.analysis.intervals import (
    Mean,
    Session,
    Stratum,
    block_mean,
    inflation,
    log_means,
    mean_on_other_prompts,
    mean_speedup,
    moderated,
    on_such_prompts,
    on_these_prompts,
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
    mean, session = block_mean(np.array([0.0, 0.1, 0.2])), Session(0.04, 0.03)
    assert session.reach == pytest.approx(stats.norm.ppf(0.975) * 0.04, rel=2e-3)
    few = session._replace(degrees=6)
    own = np.hypot(mean.reach(0.95), stats.t.ppf(0.975, 6) * 0.03)
    assert mean.reach(0.95, session=few) == pytest.approx(np.hypot(own, few.reach), 1e-4)
    # Of many settings the largest error is about as large as it may be, and the session is added.
    many = np.hypot(mean.reach(0.95, 10**6), stats.norm.ppf(1 - 0.025 / 10**6) * 0.03)
    assert many < mean.reach(0.95, 10**6, session) < many + session.reach


def test_a_session_that_few_pairs_tell_of_may_be_further_away():
    """For two normal sessions of so many pairs, the limit holds 95 % of the sessions 19 of 20."""
    generator = np.random.default_rng(1)
    for pairs in (2, 5, 20):
        seen = generator.standard_normal((2000, pairs))
        limits = [Session(one, degrees=pairs).reach for one in np.sqrt((seen**2).mean(axis=1))]
        assert np.mean(np.array(limits) > 1.96) == pytest.approx(0.95, abs=0.02)


def test_arrays_have_the_intervals_of_their_parts():
    logs = np.random.default_rng(0).normal(0, 0.1, (4, 3, 5))

    def crossed(logs):
        return on_such_prompts([Stratum.complete(logs)])

    for whole, part in ((crossed, logs), (block_mean, logs.mean(axis=-1))):
        reach = whole(part).reach(0.95, 8)
        assert reach == pytest.approx([whole(one).reach(0.95, 8) for one in part])


@pytest.mark.parametrize(
    ("apart", "square", "degrees"),
    [
        (0.0, 0.3, 0.3**2 / (0.03**2 / 2 + 0.27**2 / 2)),
        (0.1, 0.29, 0.29**2 / (0.03**2 / 2 + 0.27**2 / 2 + 0.01**2 / 4)),
        # 0.21, less than prompts alone; its 1.8 degrees are fewer than either has.
        (0.3, 0.27, 2),
    ],
)
def test_the_interval_for_other_prompts_by_hand(apart, square, degrees):
    # Blocks at -0.1, 0, 0.1 and prompts at -0.3, 0, 0.3: MS of blocks 3 x 0.01 and of prompts
    # 3 x 0.09. Four pairs are further apart, which leaves means: MS of the rest 4 apart^2 / 4.
    logs = np.add.outer([-0.1, 0.0, 0.1], [-0.3, 0.0, 0.3])
    logs[:2, :2] += [[apart, -apart], [-apart, apart]]
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(square / 9)
    ends = mean_on_other_prompts(pairs(logs)).interval(0.95)
    assert np.log(ends) == pytest.approx([-reach, reach])


def test_a_single_block_gives_no_interval_and_a_single_prompt_none_for_other_prompts():
    assert np.isnan(mean_speedup(pairs([[0.5]])).interval(0.95)).all()
    for logs in ([[0.1], [0.2]], [[0.1, 0.2]]):
        assert np.isnan(mean_on_other_prompts(pairs(logs)).interval(0.95)).all()


def test_a_block_that_lacks_a_pair_stands_where_its_other_prompts_put_it():
    # Blocks and prompts add up, so what lacks is known; then its error is that of the whole.
    full = pairs(np.add.outer([0.0, 0.1, 0.2], [-0.5, 0.0, 0.5]))
    lacking = full.drop(index=[2, 3])
    assert log_means(lacking).tolist() == pytest.approx([0.0, 0.1, 0.2])
    assert mean_speedup(lacking)[:3] == pytest.approx(mean_speedup(full)[:3])
    assert mean_on_other_prompts(lacking)[:2] == pytest.approx(mean_on_other_prompts(full)[:2])
    # Of four pairs of which one was sent twice, that one is half as far from the sum of its block
    # and prompt: blocks at 0 and 0.1, prompts at 0 and 0.5, off by 0.1 and by 0.2.
    unequal = pairs([[0.0 + 0.1, 0.5 - 0.2], [0.1 - 0.2, 0.6 + 0.2]])
    means = log_means(pd.concat([unequal, unequal.head(1)]))
    assert means.tolist() == pytest.approx([0.25, 0.35])


def one_by_one(logs, *, kinds=None):
    """Return speedups whose blocks are each one prompt: rows of `logs` are repeats."""
    made = pairs(logs)
    return made.assign(
        block=made["block"] + made["prompt"],
        category=None if kinds is None else [*kinds] * len(logs),
        started_at=pd.to_datetime(np.arange(len(made)), unit="m"),
    )


def test_where_blocks_are_prompts_the_error_is_that_within_prompts():
    # Repeats of the three prompts differ by 0.1, 0.2 and 0.3.
    mean = mean_speedup(one_by_one([[0.0, 0.5, 1.0], [0.1, 0.7, 1.3]]))
    square = (0.1**2 + 0.2**2 + 0.3**2) / 2 / 3
    assert mean[:4] == pytest.approx((0.6, np.sqrt(square / 6), 3, 6))
    # Of a single repeat prompts are what differs.
    once = one_by_one([[0.0, 0.5, 1.0]])
    assert mean_speedup(once)[:4] == pytest.approx((0.5, 0.5 / np.sqrt(3), 2, 3))
    assert not mean_speedup(once).repeated


def test_where_blocks_are_prompts_these_are_the_sample_of_such_prompts():
    logs = [[0.0, 0.5, 1.0], [0.1, 0.7, 1.3]]
    mean = mean_on_other_prompts(one_by_one(logs))
    assert mean[:3] == pytest.approx(block_mean(np.mean(logs, axis=0))[:3])
    # Prompts agree, so what is known is no more than blocks say.
    alike = [[0.0, 0.5, 0.0], [0.2, -0.3, 0.2]]
    found = mean_on_other_prompts(one_by_one(alike)).error
    assert found == pytest.approx(mean_speedup(one_by_one(alike)).error)


def test_prompts_of_a_kind_are_one_draw():
    logs = [[0.0, 0.0, 0.1, 0.1, 0.4, 0.4]]
    mean = mean_on_other_prompts(one_by_one(logs, kinds=["a", "a", "b", "b", "c", "c"]))
    assert mean[:3] == pytest.approx(block_mean(np.array([0.0, 0.1, 0.4]))[:3])
    assert mean_on_other_prompts(one_by_one(logs)).degrees == 5
    single = mean_on_other_prompts(one_by_one(logs, kinds=["a", "a", "b", "c", "d", "e"]))
    assert single.degrees == 5  # only one kind has several


def test_frames_and_arrays_have_the_same_means():
    generator = np.random.default_rng(2)
    logs, kinds = generator.normal(0, 0.1, (3, 6)), np.repeat([0, 1, 2], 2)
    for frame, strata in (
        (pairs(logs).assign(category=[*kinds] * 3), [Stratum.complete(logs, kinds=kinds)]),
        (
            one_by_one(logs, kinds=kinds),
            [Stratum.complete(logs[:, [one]], kinds=kinds[[one]]) for one in range(6)],
        ),
    ):
        these = on_these_prompts(strata)
        assert mean_speedup(frame)[:4] == pytest.approx(these[:4])
        such = on_such_prompts(strata, these)
        assert mean_on_other_prompts(frame)[:3] == pytest.approx(such[:3])


def test_blocks_of_both_forms_are_one_stratum():
    """A campaign whose further blocks are prompts: those of all prompts say how they compare."""
    logs = np.add.outer([-0.1, 0.0, 0.1], [-0.3, 0.0, 0.3])
    further = one_by_one(logs[:1] + 0.2)
    mean = mean_speedup(pd.concat([pairs(logs), further]))
    assert (mean.degrees, mean.number) == (5, pytest.approx(6))
    assert mean.log == pytest.approx(np.mean([-0.1, 0.0, 0.1, 0.1, 0.1, 0.1]))


def means(squares, degrees=2, **more):
    return [Mean(0.0, np.sqrt(one / 3), degrees, 3, **more) for one in squares]


def test_variances_that_differ_by_chance_alone_become_that_of_all():
    generator = np.random.default_rng(3)
    squares = 0.01 * generator.chisquare(2, 200) / 2
    found = moderated(means(squares))
    assert found[0].degrees > 50
    assert [one.error**2 * 3 for one in found] == pytest.approx([0.01] * 200, rel=0.25)


def test_variances_that_truly_differ_hardly_move_and_two_have_no_prior():
    squares = [1e-6, 1e-4, 1e-2, 1.0]
    found = moderated(means(squares, degrees=20))
    assert [one.error**2 * 3 for one in found] == pytest.approx(squares, rel=0.15)
    assert [one[:3] for one in moderated(means(squares[:2]))] == [
        one[:3] for one in means(squares[:2])
    ]
    assert moderated([]) == []


def test_a_setting_of_one_block_has_the_variance_of_the_others():
    once = Mean(0.1, np.nan, 0, 1, repeated=False)
    found = moderated([*means([0.01, 0.02, 0.012, 0.015], degrees=4), once])[-1]
    assert found.error**2 == pytest.approx(0.01425)
    assert found.degrees > 2


def test_blocks_like_those_before_them_widen_and_others_do_not():
    white = np.random.default_rng(4).standard_normal((8, 30))
    alike = np.cumsum(white, axis=1)
    alike -= alike.mean(axis=1, keepdims=True)
    strata = np.zeros(30)
    assert inflation(white, strata) == pytest.approx(1.0, abs=0.1)
    assert inflation(alike, strata) > 3
    assert inflation(alike[:, :5], strata[:5]) == 1  # too few to tell
