"""One measurement at a time on a machine, whichever user or campaign started it.

Jobs may have a TMPDIR of their own, so the lock is a file in a folder that all users write to.
Others may own it or have put something else in its place: it is opened with care, for reading only.
"""

import fcntl
import logging
import math
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import psutil

from specmoe.errors import MeasurementError

SAY_AGAIN_S = 600.0
POLL_S = 1.0  # seldom enough not to disturb what another process measures
FILE = "specmoe-measuring.lock"
# Tests measure side by side, each process with a folder of its own here. pytest sets the other.
FOLDER_OF_TESTS, UNDER_TEST = "SPECMOE_TESTS_LOCK_FOLDER", "PYTEST_VERSION"
_SHARED = (Path("/run/lock"), Path("/tmp"))  # noqa: S108
_ANYONE_WRITES = stat.S_IRWXO | stat.S_ISVTX

_logger = logging.getLogger(__name__)


@contextmanager
def alone() -> Iterator[None]:
    """Hold the machine's measuring lock, after waiting for any other measurement to end.

    While it waits, it says so now and then. The kernel frees the lock when the process ends,
    however it ends. Raises MeasurementError if something other than a lock file is in its place.
    """
    path, said = lock_path(), -math.inf
    while True:
        with _opened(path) as descriptor:
            free = _lock(descriptor)
            # A file that was deleted while we waited for it locks nobody out.
            if free and _is_there(descriptor, path):
                yield
                return
            if not free and time.monotonic() - said >= SAY_AGAIN_S:
                said = time.monotonic()
                words = "waiting for another measurement on this machine to end (%s is locked%s)"
                _logger.info(words, path, _holder(descriptor))
        if not free:
            time.sleep(POLL_S)


def _holder(descriptor: int) -> str:
    """Return by whom a lock is held, and since when its process runs; empty where nothing tells."""
    inode = os.fstat(descriptor).st_ino
    with suppress(OSError, psutil.Error):
        # Such as `7: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF`; of other kernels than Linux's
        # there is no such file.
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            _, kind, _, _, pid, file, *_ = line.split()
            if kind == "FLOCK" and file.endswith(f":{inode}"):
                holder = psutil.Process(int(pid))
                begun = datetime.fromtimestamp(holder.create_time())
                return f" by process {pid} of {holder.username()}, begun {begun:%d %b %H:%M}"
    return ""


def lock_path() -> Path:
    """Return the lock file, which is the same for all users of the machine."""
    if folder := os.environ.get(FOLDER_OF_TESTS):
        if not os.environ.get(UNDER_TEST):
            raise MeasurementError(
                f"{FOLDER_OF_TESTS} is exported, and only tests may measure side by side; unset it"
            )
        return Path(folder, FILE)
    shared = [folder for folder in _SHARED if _anyone_writes(folder)]
    return (shared or [_SHARED[-1]])[0] / FILE


def _anyone_writes(folder: Path) -> bool:
    with suppress(OSError):
        return folder.stat().st_mode & _ANYONE_WRITES == _ANYONE_WRITES
    return False


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        descriptor = _open_or_make(path)
    except OSError as error:
        raise MeasurementError(
            f"{path} cannot be opened as the lock of measurements ({error.strerror}); its owner or"
            " an administrator must delete it"
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MeasurementError(
                f"{path} should be the lock of measurements and is no regular file; delete it"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def _open_or_make(path: Path) -> int:
    # Without waiting for the other end of a pipe.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        # In such a folder Linux refuses O_CREAT for a file of another user.
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        with suppress(FileExistsError):
            made = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(made, 0o644)  # readable by all, whatever the umask
            return made


def _is_there(descriptor: int, path: Path) -> bool:
    """Return whether the file of a descriptor is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
