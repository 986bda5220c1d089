"""Progress is logged, and the edge writes it as plain lines."""

import io
import logging
import sys

import pytest

from specmoe import errors
from specmoe.errors import lines_to

LOGGER = logging.getLogger("specmoe.room.module")


def test_a_script_prints_the_progress_of_the_package_and_of_no_library(capsys):
    def main():
        LOGGER.info("building: %d %%", 10)
        LOGGER.debug("a detail")
        logging.getLogger("huggingface_hub").info("a library's line")

    errors.run(main)
    assert capsys.readouterr().out == "building: 10 %\n"


def test_a_room_has_its_details_in_a_stream_of_its_own(capsys):
    stream = io.StringIO()
    with lines_to(sys.stdout), lines_to(stream, "specmoe.room", logging.DEBUG):
        LOGGER.debug("a detail")
        logging.getLogger("specmoe.other").info("progress")
    LOGGER.debug("later")
    assert stream.getvalue() == "a detail\n"
    assert capsys.readouterr().out == "progress\n"


def test_a_line_that_cannot_be_written_is_a_fault():
    stream = io.StringIO()
    stream.close()
    with pytest.raises(ValueError, match="closed file"), lines_to(stream):
        LOGGER.info("lost")
