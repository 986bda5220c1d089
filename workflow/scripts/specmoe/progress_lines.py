"""Progress as plain lines: modules log it, and the edge decides which stream receives it."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


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


def drop_unread() -> None:
    """Let standard output and error drop what nobody reads any more, as after `| head`."""

    def dropping(act: Callable[..., Any]) -> Callable[..., Any]:
        def tried(*given: Any) -> Any:
            with suppress(BrokenPipeError):
                return act(*given)

        return tried

    for stream in (sys.stdout, sys.stderr):
        for name in ("write", "flush"):
            setattr(stream, name, dropping(getattr(stream, name)))
