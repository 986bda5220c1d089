"""Numbers in words: counts and their nouns, ratios of times, and exit codes."""

import pytest

from specmoe.text import counted, duration, exit_status, later


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 passes"), (1, "1 pass"), ("1", "1 pass"), ("1 024", "1 024 passes")],
)
def test_a_noun_goes_with_its_count(count, words):
    assert counted(count, "pass", "passes") == words
    assert counted(2, "suite") == "2 suites"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.44, "44% later"), (0.9, "10% earlier"), (1.004, "at the same time")],
)
def test_what_takes_longer_comes_later(ratio, words):
    assert later(ratio, "{}% later", "{}% earlier") == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (255, "exit code 255"),
        (-9, "killed by SIGKILL"),
        (137, "killed by SIGKILL"),
        (
            -4,
            "killed by SIGILL, an unknown instruction; set campaign.engine: portable",
        ),
    ],
)
def test_an_end_by_a_signal_is_named_however_the_exit_code_tells_it(code, words):
    assert exit_status(code) == words


def test_durations_have_a_unit_that_suits_them_and_may_be_ranges():
    words = [duration(s) for s in (None, 7, 240, 9000, 27000)]
    assert words == ["unknown", "7 s", "4 min", "150 min", "7.5 h"]
    assert duration(7 * 60, 23 * 60) == "7 to 23 min"
    assert duration(3.9, 4.1) == "4 s"
