"""A guarded process ends when the process that started it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specmoe.engine.supervise import guarded

from ...processes import alive, eventually

UP = "import signal, time; {}; print('up', flush=True); time.sleep(600)"
SLEEP = [sys.executable, "-c", UP.format("pass")]
STUBBORN = [sys.executable, "-c", UP.format("signal.signal(signal.SIGTERM, signal.SIG_IGN)")]


def start(command, **more):
    process = subprocess.Popen(
        guarded(command, **more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"up\n"
    return process


@pytest.mark.parametrize(("command", "end"), [(SLEEP, signal.SIGTERM), (STUBBORN, signal.SIGKILL)])
def test_closing_the_pipe_ends_the_command_and_removes_its_folder(tmp_path, command, end):
    folder = tmp_path / "scratch"
    folder.mkdir()
    (folder / "s.sock").touch()
    process = start(command, scratch=str(folder))
    assert folder.exists()
    process.stdin.close()
    assert process.wait(30) == 128 + end
    assert not folder.exists()


def test_the_commands_own_exit_code_is_kept():
    command = [sys.executable, "-c", "print('up', flush=True); raise SystemExit(7)"]
    assert start(command).wait(30) == 7


def test_killing_the_starter_ends_the_command(tmp_path: Path):
    pid_file = tmp_path / "pid"
    code = (
        f"import os, pathlib, time; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()));"
        "time.sleep(600)"
    )
    start = (
        f"import subprocess, time; subprocess.Popen({guarded([sys.executable, '-c', code])!r},"
        " stdin=subprocess.PIPE); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", start])
    pid = int(eventually(lambda: pid_file.exists() and pid_file.read_text()))
    starter.kill()
    starter.wait()
    assert eventually(lambda: not alive(pid))
