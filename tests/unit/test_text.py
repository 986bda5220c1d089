"""Numbers in words: counts and their nouns, exit codes, and durations."""

import pytest

from specmoe.text import counted, duration, exit_status, listed

ILLEGAL = "killed by SIGILL, an unknown instruction; set campaign.engine: portable"


@pytest.mark.parametrize(
    ("tell", "given", "words"),
    [
        (counted, (0, "pass", "passes"), "0 passes"),
        (counted, (1, "pass", "passes"), "1 pass"),
        (counted, ("1", "pass", "passes"), "1 pass"),
        (counted, ("1 024", "pass", "passes"), "1 024 passes"),
        (counted, (2, "suite"), "2 suites"),
        (listed, (["A", "B", "C"],), "A, B and C"),
        (listed, (["A", "B, 1", "C"],), "A; B, 1; and C"),
        (exit_status, (255,), "exit code 255"),
        (exit_status, (-9,), "killed by SIGKILL"),
        (exit_status, (137,), "killed by SIGKILL"),
        (exit_status, (-4,), ILLEGAL),
        (duration, (None,), "unknown"),
        (duration, (7,), "7 s"),
        (duration, (240,), "4 min"),
        (duration, (9000,), "150 min"),
        (duration, (27000,), "7.5 h"),
        (duration, (7 * 60, 23 * 60), "7 to 23 min"),
        (duration, (3.9, 4.1), "4 s"),
    ],
)
def test_a_number_is_told_as_people_say_it(tell, given, words):
    assert tell(*given) == words
