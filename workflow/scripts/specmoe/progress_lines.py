"""Progress as plain lines: modules log it, and the edge decides which stream receives it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class _Lines(logging.StreamHandler[TextIO]):
    """Writes the bare message and flushes it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Raise what went wrong: logging would hide a full disk behind a traceback and go on."""
        raise


@contextmanager
def lines_to(stream: TextIO, name: str = "specmoe", level: int = logging.INFO) -> Iterator[None]:
    """Write what the logger `name` and the loggers below it receive to a stream, a line each."""
    logger, handler = logging.getLogger(name), _Lines(stream)
    handler.setLevel(level)
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
