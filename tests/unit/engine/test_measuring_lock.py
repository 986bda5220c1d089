"""Two measurements never share the machine."""

import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from specmoe.engine import measuring_lock
from specmoe.engine.measuring_lock import FOLDER_OF_TESTS, alone, lock_path
from specmoe.errors import MeasurementError

MEASURE = (
    "import sys; from specmoe.engine.measuring_lock import alone\n"
    "from specmoe.progress_lines import lines_to\n"
    "with lines_to(sys.stdout), alone(): print('measuring', flush=True)"
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder for the lock alone, and locks that are looked at without pause."""
    monkeypatch.setenv(FOLDER_OF_TESTS, str(tmp_path))
    monkeypatch.setattr(measuring_lock, "POLL_S", 0.01)
    return tmp_path


def second_measurement(root, **environment):
    """Start another process that measures."""
    return subprocess.Popen(
        [sys.executable, "-c", MEASURE],
        cwd=root / "workflow/scripts",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def test_a_second_measurement_waits_for_the_first(root, folder, tmp_path_factory):
    with alone():
        second = second_measurement(root, TMPDIR=str(tmp_path_factory.mktemp("own")))
        said = second.stdout.readline()
        assert "waiting for another measurement" in said
        if Path("/proc/locks").exists():
            assert f" by process {os.getpid()} of " in said
        assert second.poll() is None
    assert second.stdout.readline() == "measuring\n"
    assert second.wait(60) == 0


def test_the_lock_is_where_every_user_writes_whatever_their_tmpdir(monkeypatch, tmp_path):
    monkeypatch.delenv(FOLDER_OF_TESTS, raising=False)
    before = lock_path()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert lock_path() == before
    assert before.parent.stat().st_mode & stat.S_IRWXO == stat.S_IRWXO


def test_any_user_can_open_the_lock_that_another_made(folder):
    before = os.umask(0o077)
    try:
        with alone():
            assert stat.S_IMODE(lock_path().stat().st_mode) == 0o644
    finally:
        os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_lock_that_another_user_owns_in_a_shared_folder_can_be_held(folder):
    folder.chmod(0o1777)
    lock_path().touch()
    os.chown(lock_path(), 65534, 65534)
    with alone():
        assert not _free(lock_path())


@pytest.mark.parametrize(
    "make, fault",
    [
        (os.mkfifo, "no regular file"),
        (os.mkdir, "no regular file"),
        (lambda path: path.symlink_to("/etc/passwd"), "cannot be opened"),
    ],
)
def test_what_is_no_lock_file_is_refused_by_name_and_does_not_hang(folder, make, fault):
    make(lock_path())
    with pytest.raises(MeasurementError, match=rf"specmoe-measuring\.lock .*{fault}"), alone():
        pass


def test_a_lock_file_that_was_deleted_meanwhile_does_not_count(folder):
    held, done = threading.Event(), threading.Event()

    def wait_for_it():
        with alone():
            held.set()
            done.wait(60)

    with alone():
        waiting = threading.Thread(target=wait_for_it)
        waiting.start()
        lock_path().unlink()
    assert held.wait(60)
    # The thread holds the new file, so a third one waits.
    assert not _free(lock_path())
    done.set()
    waiting.join()
    assert _free(lock_path())


def _free(path) -> bool:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
