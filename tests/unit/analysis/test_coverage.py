"""Coverage of intervals on a known truth; tests/benchmarks/interval_coverage.py has the table."""

import numpy as np
import pytest

from ... import simulated_speedups as simulated
from ...simulated_speedups import WORLDS, World

TESTED = [
    *("as usual", "noisy", "heavy tails", "blocks alike, 0.3", "drift of 5 %", "prompts in kinds"),
    *("sessions of 3 %", "sessions as far apart as may be", "settings as far apart as may be"),
    "1 setting",
]


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("world", TESTED)
def test_intervals_hold_the_truth(world, repeats):
    shares = simulated.held(WORLDS[world], repeats, times=300, seed=repeats)
    # Three standard deviations of a share of 300 are 4 %.
    assert min(shares.values()) >= 0.9, shares


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_blocks_of_all_prompts_are_held_too(blocks):
    shares = simulated.held(World(run=0.05, block=0.05, settings=12), blocks, times=300, seed=1)
    assert min(shares.values()) >= 0.91, shares


@pytest.mark.parametrize("world", TESTED)
def test_answers_are_seldom_wrong_over_all_looks(world):
    wrong = simulated.wrong_answers(WORLDS[world], times=300, seed=2)
    assert max(wrong.values()) <= 0.03 + 3 * np.sqrt(0.03 / 300), wrong


@pytest.mark.parametrize("world", ["quiet", "noisy", "prompts differ"])
def test_kinds_are_told_apart_where_they_differ_and_hardly_where_they_are_alike(world):
    for speedup in (1.0, 1.1, 1.3):
        said, _ = simulated.found_by_kind(WORLDS[world], [speedup] * 5, 3, times=300, seed=1)
        assert said <= 0.02
    apart = [2.0, 2.0, 0.5, 0.5, 0.5]
    said, held = simulated.found_by_kind(WORLDS[world], apart, 3, times=300, seed=1)
    assert said > 0.8 and held > 0.95


def test_clear_answers_come_early_and_the_best_setting_stays():
    for speedup in (0.7, 1.4):
        right, repeats = simulated.right_answers(WORLDS["as usual"], speedup, times=300, seed=3)
        assert right > 0.9 and repeats < 2
    assert simulated.wrong_answers(WORLDS["noisy"], times=300, seed=3)["dropped"] < 0.01


def test_the_supplement_prints_rates_that_such_targets_have(root):
    """Its rows are those of `interval_coverage.py`; this counts one again."""
    assert rf"{100 * World().run:.0f}\,\% by run" in (root / "paper/supplement.tex.j2").read_text()
    lines = (root / "paper/answers.tex").read_text().splitlines()
    rows = {line.split(" & ")[0]: line.rstrip("\\ ").split(" & ")[1:] for line in lines}
    # 3 % of 2000 targets, and two standard errors. Sessions of 8 % are farther apart than the six
    # pairs of them allow.
    farther = r"sessions of 8\,\%", r"8\,\%, and 3\,\% of each setting"
    assert {*farther} < {*rows}
    for name, row in rows.items():
        assert max(map(float, row[4:7])) <= (5 if name in farther else 3.8), name
    row = [float(one) for one in rows["as usual"]]
    for speedup, printed in zip((0.8, 0.9, 1.2, 1.3), row[7:11], strict=True):
        found = simulated.right_answers(WORLDS["as usual"], speedup, times=300, seed=4)[0]
        assert 100 * found == pytest.approx(printed, abs=9)
