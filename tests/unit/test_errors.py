"""Faults reach the user as one line."""

import io
import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from specmoe import errors
from specmoe.errors import lines_to


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (errors.ModelError("x.gguf: truncated"), "ModelError: x.gguf: truncated"),
        (
            OSError(28, "No space left on device", "x"),
            r"OSError: x: No space left on device; make room on its disk .*, and the same .*",
        ),
        (
            IsADirectoryError(21, "Is a directory", "x"),
            "IsADirectoryError: x: Is a directory; a file belongs there; move the folder away",
        ),
        (MemoryError("Unable to allocate 9 GiB"), "MemoryError: Unable to allocate 9 GiB"),
        (ImportError("numpy"), r"ImportError: numpy; \S+ has other packages than requirements.*"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_foreseeable_fault_is_one_line_and_a_failing_exit(fault, line, monkeypatch):
    def main():
        raise fault

    monkeypatch.setattr(sys, "argv", ["specmoe", "verb"])
    with pytest.raises(SystemExit) as caught:
        errors.run(main)
    assert re.fullmatch(line, caught.value.code)


@pytest.mark.parametrize("full", [".", "results/x"])
def test_a_tool_is_not_blamed_for_a_full_disk(full, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results/x").mkdir(parents=True)
    free = {Path(full).absolute(): 0}
    usage = lambda folder: SimpleNamespace(free=free.get(folder.absolute(), 2**30))  # noqa: E731
    monkeypatch.setattr("shutil.disk_usage", usage)
    assert re.fullmatch(
        rf"EngineError: no build; the disk of (/\S+|{full}) is full; make room.*",
        errors.error_message(errors.EngineError("no build")),
    )


def test_a_bug_is_one_line_and_a_file_with_its_traceback(tmp_path, monkeypatch):
    def main():
        raise RuntimeError("bug\nand more")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["specmoe", "measure", "--block", "a b"])
    with pytest.raises(SystemExit) as caught:
        errors.run(main)
    [kept] = Path("results/errors").glob("specmoe-measure-*.log")
    assert caught.value.code == (
        "specmoe measure failed in a way it does not foresee: RuntimeError: bug;"
        f" please report it with {kept}"
    )
    assert "specmoe measure --block 'a b'" in kept.read_text()
    assert 'raise RuntimeError("bug' in kept.read_text()


LOGGER = logging.getLogger("specmoe.room.module")


def test_a_script_prints_progress_and_a_room_has_its_details_in_a_stream_of_its_own(capsys):
    stream = io.StringIO()

    def main():
        with lines_to(stream, "specmoe.room", logging.DEBUG):
            LOGGER.debug("a detail")
            logging.getLogger("specmoe.other").info("building: %d %%", 10)
        LOGGER.debug("later")
        logging.getLogger("huggingface_hub").info("a library's line")

    errors.run(main)
    assert stream.getvalue() == "a detail\n"
    assert capsys.readouterr().out == "building: 10 %\n"


def test_a_line_that_cannot_be_written_is_a_fault():
    stream = io.StringIO()
    stream.close()
    with pytest.raises(ValueError, match="closed file"), lines_to(stream):
        LOGGER.info("lost")
