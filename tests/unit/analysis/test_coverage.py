"""Coverage of intervals on a known truth; tests/benchmarks/interval_coverage.py has the table."""

import numpy as np
import pytest

from ...simulated_speedups import World, held, right_answers, wrong_answers


@pytest.mark.parametrize(("blocks", "prompts", "settings"), [(3, 20, 8), (5, 5, 29), (10, 4, 2)])
def test_intervals_hold_the_truth(blocks, prompts, settings):
    world = World(0.03, 0.1, blocks, prompts, settings, session=0.0)
    shares = held(world, times=500, seed=blocks)
    # Three standard deviations of a share of 500 are 3 %.
    assert min(shares.values()) >= 0.92, shares


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("block", [0.01, 0.05])
@pytest.mark.parametrize(("blocks", "prompts", "settings"), [(3, 20, 8), (5, 5, 29), (3, 4, 1)])
def test_no_answer_is_wrong_more_often_than_its_level_says(
    block, blocks, prompts, settings, staged
):
    world = World(block, 0.1, blocks, prompts, settings)
    wrong = wrong_answers(world, times=200, seed=2, staged=staged)
    assert max(wrong) <= 0.025 * 200 + 3 * np.sqrt(0.025 * 200)


def test_the_supplement_prints_rates_that_such_targets_have(root):
    """Its rows are those of `interval_coverage.py`; this counts one again."""
    lines = (root / "paper/answers.tex").read_text().splitlines()
    rows = [[float(one) for one in line.rstrip("\\ ").split(" & ")] for line in lines]
    assert len(rows) == 12
    # 2.5 % of 2000 targets, and three standard errors.
    wrong = [rate for row in rows for rate in (*row[3:6], *row[9:12])]
    assert max(wrong) <= 2.5 + 100 * 3 * np.sqrt(0.025 / 2000)
    [row] = [row for row in rows if row[:3] == [5, 20, 8]]
    worlds = [World(block, prompt, 5, 20, 8) for block in (0.01, 0.05) for prompt in (0.1, 0.3)]
    for staged, gain in ((False, row[8]), (True, row[14])):
        found = [right_answers(one, 1.2, times=100, seed=3, staged=staged)[0] for one in worlds]
        assert np.mean(found) == pytest.approx(gain, abs=10)
