"""Numbers in words: counts and their nouns, ratios of times, and exit codes."""

import pytest

from specmoe.words import counted, exit_words, later, verb


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


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "exit code 3"),
        (255, "exit code 255"),
        (-9, "killed by SIGKILL"),
        (137, "killed by SIGKILL"),
        (132, "killed by SIGILL, an instruction that this processor lacks"),
        (-4, "killed by SIGILL, an instruction that this processor lacks"),
    ],
)
def test_an_end_by_a_signal_is_named_however_the_exit_code_tells_it(code, words):
    assert exit_words(code) == words
