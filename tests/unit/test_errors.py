"""Faults reach the user as one line."""

import pytest

from specmoe import errors


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (errors.ModelError("x.gguf: truncated"), "ModelError: x.gguf: truncated"),
        (
            OSError(28, "No space left on device", "x"),
            "OSError: [Errno 28] No space left on device: 'x'",
        ),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_foreseeable_fault_is_one_line_and_a_failing_exit(fault, line):
    def main():
        raise fault

    with pytest.raises(SystemExit) as caught:
        errors.run(main)
    assert caught.value.code == line


def test_a_bug_keeps_its_traceback():
    def main():
        raise KeyError("bug")

    with pytest.raises(KeyError):
        errors.run(main)


def test_a_name_unlike_any_gets_the_whole_list():
    assert errors.nearest("zebra", ["b", "a"]) == "known: a, b"
