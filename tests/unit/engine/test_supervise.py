"""A guarded process ends when its starter does, however that ends."""

import signal
import subprocess
import sys
from pathlib import Path

from specmoe.engine.supervise import guarded

from ...processes import alive, eventually

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(600)",
]


def start(command):
    process = subprocess.Popen(
        guarded(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout.readline() == b"up\n"
    return process


def test_closing_the_pipe_ends_the_command():
    process = start(SLEEP)
    process.stdin.close()
    assert process.wait(30) == 128 + signal.SIGTERM


def test_a_command_that_ignores_the_request_is_killed():
    process = start(STUBBORN)
    process.stdin.close()
    assert process.wait(30) == 128 + signal.SIGKILL


def test_the_commands_own_exit_code_is_kept():
    command = [sys.executable, "-c", "print('up', flush=True); raise SystemExit(7)"]
    assert start(command).wait(30) == 7


def test_killing_the_starter_ends_the_command(tmp_path: Path):
    pid_file = tmp_path / "pid"
    command = [
        sys.executable,
        "-c",
        f"import os, pathlib, time; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()));"
        "time.sleep(600)",
    ]
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import subprocess, time; subprocess.Popen({guarded(command)!r},"
            " stdin=subprocess.PIPE); time.sleep(600)",
        ]
    )
    pid = int(eventually(lambda: pid_file.exists() and pid_file.read_text()))
    starter.kill()
    starter.wait()
    assert eventually(lambda: not alive(pid))
