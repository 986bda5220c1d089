"""Sittings: how blocks are told apart by time, and what that does to intervals and answers."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.advice import Answer
from specmoe.analysis.advice_text import describe_advice
from specmoe.analysis.intervals import joint_intervals
from specmoe.analysis.sittings import (
    another_sitting,
    by_sitting,
    sitting_reach,
    sitting_variance,
    sittings_of,
)
from specmoe.config.measurement import Measurement

from ...planted_sittings import answers, cell, coverage
from .test_advice import advice_of, campaign, config, setting, shown  # noqa: F401

HOUR = pd.Timedelta(hours=1)


def at_hours(runs, hours):
    """Return runs whose repeats begin at these hours."""
    began = pd.Timestamp("2026-01-02T03:04Z") + HOUR * pd.Series(hours, dtype=float)
    return runs.assign(started_at=runs["repeat"].map(began))


def gaining(*rates):
    return campaign(setting(4, list(rates)), repeats=len(rates))


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ((0, 0.1, 0.2), [0, 0, 0]),
        ((0, 5.9, 11.8), [0, 0, 0]),  # from one block to the next, however long it takes in all
        ((0, 6.1, 6.2), [0, 1, 1]),
        ((24, 0, 48), [1, 0, 2]),  # by time, whatever the order of repeats
    ],
)
def test_a_sitting_begins_after_hours_without_a_run(hours, expected):
    runs = at_hours(gaining(70, 70, 70), hours)
    found = runs["block"].map(sittings_of(runs, gap_h=6))
    assert found.groupby(runs["repeat"]).first().tolist() == expected


def test_blocks_of_one_sitting_are_one_block_from_three_sittings_on():
    runs = at_hours(gaining(*[70] * 6), (0, 0.1, 24, 24.1, 48, 48.1))
    joined = by_sitting(runs, sittings_of(runs, 6))
    assert 2 * joined["block"].nunique() == runs["block"].nunique()
    assert not joined.duplicated(["block", "draft", "gamma", "prompt", "pass"]).any()
    two = runs[runs["repeat"] < 4]
    assert (by_sitting(two, sittings_of(two, 6))["block"] == two["block"]).all()


@pytest.mark.parametrize(
    ("sittings", "repeats", "asked", "after"),
    [(1, 3, 12, (6, 24)), (2, 6, 24, (9, 36)), (3, 2, 4, (3, 5))],
)
def test_another_sitting_is_as_long_as_those_before(sittings, repeats, asked, after):
    measurement = Measurement(repeats=repeats, more_repeats={"B/t/d": asked})
    found = another_sitting(measurement, sittings)
    assert (found["repeats"], found["more_repeats"]) == (after[0], {"B/t/d": after[1]})


def test_what_other_sittings_add_falls_with_their_number_and_ends_where_they_are_seen():
    runs = at_hours(gaining(*[70] * 4), (0, 0.1, 24, 24.1))
    one, two = (by_sitting(part, sittings_of(part, 6)) for part in (runs[runs["repeat"] < 2], runs))
    assert sitting_variance(one, 0.08) == pytest.approx(0.08**2)
    assert sitting_variance(two, 0.08) == pytest.approx(0.08**2 / 2)
    three = at_hours(gaining(*[70] * 3), (0, 24, 48))
    assert sitting_variance(by_sitting(three, sittings_of(three, 6)), 0.08) == 0
    reach = sitting_reach({"confidence": 0.95, "sitting_spread": 0.08})
    assert reach == pytest.approx(np.expm1(1.959964 * 0.08), rel=1e-4)


def spread_of(config, spread):  # noqa: F811
    statistics = config.statistics.model_copy(update={"sitting_spread": spread})
    return config.model_copy(update={"statistics": statistics})


@pytest.mark.parametrize(
    ("rates", "alike", "apart"),
    [
        ((54, 55, 56), Answer.ON, Answer.UNDECIDED),
        ((44, 45, 46), Answer.OFF, Answer.UNDECIDED),
        ((69, 70, 71), Answer.ON, Answer.ON),
        ((29, 30, 31), Answer.OFF, Answer.OFF),
    ],
)
def test_a_day_decides_only_what_no_other_day_may_turn(config, rates, alike, apart):  # noqa: F811
    runs = gaining(*rates)
    for spread, expected in ((0.0, alike), (0.08, apart)):
        row, _ = advice_of(runs, spread_of(config, spread))
        assert row["answer"] == expected
    assert row["these_sittings"] == alike
    decides_later = apart == Answer.UNDECIDED
    assert row["other_sittings"] == decides_later
    assert ("another_sitting" in str(row["command"])) == decides_later
    assert pd.isna(row["second_look_repeats"])


def test_three_sittings_decide_by_what_they_show(config):  # noqa: F811
    days = (0, 0.1, 24, 24.1, 48, 48.1)
    steady, moving = gaining(54, 56, 54, 56, 54, 56), gaining(50, 51, 54, 55, 60, 61)
    row, _ = advice_of(at_hours(steady, days), spread_of(config, 0.08))
    assert (row["answer"], row["sittings"], row["blocks"]) == (Answer.ON, 3, 3)
    row, _ = advice_of(at_hours(moving, days), spread_of(config, 0.08))
    assert (row["answer"], row["other_sittings"]) == (Answer.UNDECIDED, True)


def test_the_text_says_what_another_sitting_may_change(config):  # noqa: F811
    text = " ".join(describe_advice(shown(gaining(54, 55, 56), spread_of(config, 0.08))).split())
    assert "It was measured in 1 sitting. Another one, hours later, may differ by ±17%" in text
    assert "The intervals decide, but another sitting may differ by more; the only setting" in text
    assert "These sittings by themselves say: switch it on" in text
    assert "snakemake --cores 1 another_sitting --configfile <those of this campaign>" in text


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1, 0.5])
def test_what_is_added_makes_no_interval_narrower(noise):
    generator = np.random.default_rng(7)
    cells = {
        name: cell(generator, 1, 3, spread=0)[0].assign(
            speedup=np.exp(noise * np.repeat(generator.standard_normal(3), 4))
        )
        for name in range(6)
    }
    plain = joint_intervals(cells, 0.95)
    wider = joint_intervals(cells, 0.95, known=dict.fromkeys(cells, 0.08**2))
    for name, (low, high) in plain.items():
        assert wider[name].low <= low <= high <= wider[name].high
        assert wider[name].high / wider[name].low >= np.exp(2 * 1.95 * 0.08)


def test_intervals_hold_what_they_are_about():
    """A hundred campaigns a case; `interval_coverage.py` has a thousand, and the paper's table."""
    generator = np.random.default_rng(5)
    one = coverage(1, 3, spread=0.06, times=100, generator=generator)
    assert min(one) >= 0.9
    five = coverage(5, 3, spread=0.1, times=100, generator=generator)
    assert five.average >= 0.9
    # The interval of one sitting, as it is printed without advice, is not about another.
    assert five.another < 0.9


def test_advice_seldom_turns_with_the_day():
    generator = np.random.default_rng(6)
    for sittings in (1, 3):
        asked = {"truth": 1.0, "spread": 0.06, "times": 150, "generator": generator}
        found = answers(sittings, **asked)
        assert found.get(Answer.ON, 0) + found.get(Answer.HERE, 0) <= 0.06
        assert found.get(Answer.OFF, 0) <= 0.06
