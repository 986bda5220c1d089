"""Numbers in words: a noun goes with its count, and a ratio of times says what comes later."""

import pytest

from specmoe.words import counted, later, verb


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 suites"), (1, "1 suite"), ("1", "1 suite"), ("1 024", "1 024 suites")],
)
def test_a_noun_goes_with_its_count(count, words):
    assert counted(count, "suite") == words


def test_an_irregular_plural_and_a_verb_go_with_their_count():
    assert [counted(count, "pass", "passes") for count in (1, 2)] == ["1 pass", "2 passes"]
    assert [verb(count) for count in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.44, "44% later"), (0.9, "10% earlier"), (1.004, "at the same time")],
)
def test_what_takes_longer_comes_later(ratio, words):
    assert later(ratio) == words
