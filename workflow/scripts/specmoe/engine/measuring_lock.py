"""One measurement at a time on a machine, whichever user or campaign started it."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from specmoe.errors import MeasurementError

POLL_S = 1.0  # seldom enough not to disturb what another process measures
FILE = "specmoe-measuring.lock"
# Tests measure side by side, each process with a folder of its own here. pytest sets the other.
FOLDER_OF_TESTS, UNDER_TEST = "SPECMOE_TESTS_LOCK_FOLDER", "PYTEST_VERSION"
# Jobs may have a TMPDIR of their own, so the lock is in a folder that all users write to.
_SHARED, _OTHERWISE = Path("/run/lock"), Path("/tmp")  # noqa: S108

_logger = logging.getLogger(__name__)


@contextmanager
def alone() -> Iterator[None]:
    """Hold the machine's measuring lock, after waiting for any other measurement to end.

    The kernel frees the lock when the process ends, however it ends. Raises MeasurementError if
    something other than a lock file is in its place.
    """
    path = lock_path()
    if path.exists() and not path.is_file():
        raise MeasurementError(
            f"{path} should be the lock of measurements and is no regular file; delete it"
        )
    lock = FileLock(path, mode=0o666, poll_interval=POLL_S, on_acquired=_sign)
    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            words = "waiting for another measurement on this machine to end (%s is locked%s)"
            _logger.info(words, path, _holder(path))
            lock.acquire()
    except OSError as error:
        raise MeasurementError(
            f"{path} cannot be opened as the lock of measurements ({error.strerror}); its owner or"
            " an administrator must delete it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def lock_path() -> Path:
    """Return the lock file, which is the same for all users of the machine."""
    if folder := os.environ.get(FOLDER_OF_TESTS):
        if not os.environ.get(UNDER_TEST):
            raise MeasurementError(
                f"{FOLDER_OF_TESTS} is exported, and only tests may measure side by side; unset it"
            )
        return Path(folder, FILE)
    shared = _SHARED.is_dir() and _SHARED.stat().st_mode & stat.S_IWOTH
    return (_SHARED if shared else _OTHERWISE) / FILE


def _sign(descriptor: int) -> None:
    """Write into the lock file who holds it."""
    text = f" by process {os.getpid()} in {Path.cwd()} since {datetime.now():%d %b %H:%M}"
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _holder(path: Path) -> str:
    """Return what the holder of a lock wrote into it; any user may have written it."""
    with suppress(OSError), path.open(errors="replace") as file:
        return "".join(filter(str.isprintable, file.read(300)))
    return ""
