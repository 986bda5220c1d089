"""Lock files that processes wait for, and say so."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

POLL_S = 1.0  # seldom enough not to disturb what another process measures

_logger = logging.getLogger(__name__)


@contextmanager
def held(path: Path, waiting: str) -> Iterator[None]:
    """Hold a lock file; if another process holds it, log `waiting` once and wait.

    The kernel frees the lock when the process ends, however it ends.
    """
    lock = FileLock(path, poll_interval=POLL_S)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        _logger.info(waiting)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
