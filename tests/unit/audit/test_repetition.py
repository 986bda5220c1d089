"""Loops: by hand, planted, and in texts that repeat themselves on purpose."""

import re

import numpy as np
import pytest
import yaml

from specmoe.audit.limits import LIMITS
from specmoe.audit.output import LONGEST_PERIOD, looping

from ...conftest import ROOT


def words_of(text):
    """Return a number for each word, sign and line break of a text, and indents as one."""
    found = re.findall(r"\w+|\n +|[^\w ]", text)
    numbers = {word: number for number, word in enumerate(dict.fromkeys(found))}
    return tuple(numbers[word] for word in found)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ([7] * 16, 1),
        ([7] * 15, 0),  # too short
        ([5, 6, *[1, 2, 3] * 6, 8], 18 / 21),
        ([*range(12), *range(12)], 0),  # two turns
        ([*[1] * 20, *range(10, 20), *[3, 4] * 15, *range(20, 40)], 50 / 80),  # two loops
        ([1], 0),
        ([], 0),
    ],
)
def test_loops_by_hand(text, share):
    assert looping(tuple(text)) == share


@pytest.mark.parametrize("length", [64, 128, 256, 512])
def test_a_planted_loop_is_found_wherever_three_turns_of_it_fit(length):
    rest = length // 2
    for period in range(1, LONGEST_PERIOD + 2):
        fits = rest >= max(16, 3 * period) and period <= LONGEST_PERIOD
        repeated = (2000 + at % period for at in range(rest))
        assert looping((*range(1000, 1000 + rest), *repeated)) == (0.5 if fits else 0)


def test_texts_with_refrains_do_not_loop_but_for_the_rules_of_two_tables():
    # Words are coarser than a model's tokens, of which these rules have too few.
    found = {
        f"{kind}, {name}": looping(words_of(text))
        for kind, named in yaml.safe_load((ROOT / "tests/refrains.yaml").read_text()).items()
        for name, text in named.items()
    }
    assert {name: share for name, share in found.items() if share} == {
        "table, prices": pytest.approx(21 / 185),  # | --- | --- | --- | --- | --- |
        "table, results": pytest.approx(16 / 131),  # |------|---|---|---|
    }
    assert np.mean([*found.values()]) < LIMITS.looping_share / 5
