"""An end by a signal is named, however the exit code tells it."""

import pytest

from specmoe.words import exit_words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "exit code 3"),
        (-9, "killed by SIGKILL"),
        (137, "killed by SIGKILL"),
        (132, "killed by SIGILL, an instruction that this processor lacks"),
        (-4, "killed by SIGILL, an instruction that this processor lacks"),
        (255, "exit code 255"),
    ],
)
def test_codes_in_words(code, words):
    assert exit_words(code) == words
