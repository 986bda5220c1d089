"""Two measurements never share the machine, and what a job starts ends with it."""

import os
import signal
import stat
import subprocess
import sys

import psutil
import pytest

from specmoe.engine.process import end_guarded, start_guarded
from specmoe.errors import MeasurementError
from specmoe.hardware.machine import FOLDER_OF_TESTS, lock_path, measuring_lock

from ...processes import alive, eventually, start_python

# It measures until its input ends.
MEASURE = (
    "import sys; from specmoe.hardware import machine as lock\n"
    "from specmoe.errors import lines_to\n"
    "lock.POLL_S = 0.01\n"
    "with lines_to(sys.stdout), lock.measuring_lock():\n"
    "    print('measuring', flush=True)\n"
    "    sys.stdin.read()"
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder for the lock alone."""
    monkeypatch.setenv(FOLDER_OF_TESTS, str(tmp_path))


def test_a_measurement_waits_for_another_that_ends_or_is_killed(folder, tmp_path_factory):
    before = os.umask(0o077)
    first = start_python(MEASURE)
    os.umask(before)
    assert first.stdout.readline() == "measuring\n"
    second = start_python(MEASURE, TMPDIR=str(tmp_path_factory.mktemp("own")))
    waiting = f"waiting for another measurement on this machine to end (it holds {lock_path()})\n"
    assert second.stdout.readline() == waiting
    assert second.poll() is None
    first.kill()
    assert second.stdout.readline() == "measuring\n"
    third = start_python(MEASURE)
    assert third.stdout.readline() == waiting
    assert second.communicate()[0] == ""  # it said once that it waits
    assert third.communicate()[0] == "measuring\n"
    # Any user can hold the lock that another made.
    assert stat.S_IMODE(lock_path().stat().st_mode) == 0o666


def test_the_lock_is_where_every_user_writes_whatever_their_tmpdir(monkeypatch, tmp_path):
    monkeypatch.delenv(FOLDER_OF_TESTS, raising=False)
    before = lock_path()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert lock_path() == before
    assert before.parent.stat().st_mode & stat.S_IRWXO == stat.S_IRWXO


@pytest.mark.parametrize("make", [os.mkdir, lambda path: path.symlink_to("/etc/passwd")])
def test_what_is_no_lock_file_is_refused_by_name_and_does_not_hang(folder, make):
    make(lock_path())
    line = r"specmoe-measuring\.lock cannot be opened as the lock"
    with pytest.raises(MeasurementError, match=line), measuring_lock():
        pass


UP = "import signal, time; {}; print('up', flush=True); time.sleep(600)"
SLEEP = [sys.executable, "-c", UP.format("pass")]
STUBBORN = [sys.executable, "-c", UP.format("signal.signal(signal.SIGTERM, signal.SIG_IGN)")]


def start(command):
    process = start_guarded(command, subprocess.PIPE, subprocess.DEVNULL, os.environ)
    assert process.stdout.readline() == b"up\n"
    return process


@pytest.mark.parametrize(("command", "end"), [(SLEEP, signal.SIGTERM), (STUBBORN, signal.SIGKILL)])
def test_closing_the_pipe_ends_the_command(command, end):
    process = start(command)
    process.stdin.close()
    assert process.wait(30) == 128 + end


def test_a_command_whose_guard_was_killed_ends_with_the_job_too():
    process = start(SLEEP)
    [command] = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    assert alive(command.pid)
    end_guarded(process)
    eventually(lambda: not alive(command.pid))


def test_the_commands_own_exit_code_is_kept():
    command = [sys.executable, "-c", "print('up', flush=True); raise SystemExit(7)"]
    assert start(command).wait(30) == 7
