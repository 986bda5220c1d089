"""One measurement at a time on a machine, whoever started it."""

import fcntl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(say: Callable[[str], None]) -> Iterator[None]:
    """Hold the machine's measuring lock, waiting for it if another measurement has it.

    The kernel frees the lock when the process ends, however it ends.
    """
    path = Path(tempfile.gettempdir(), "specmoe-measuring.lock")
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another measurement on this machine to end ({path} is locked)")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
