"""Processes of the engine and of its build: run, logged, and their ends explained."""

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from specmoe.config.base import resource as data
from specmoe.config.engines import build_environment
from specmoe.engine import supervise
from specmoe.errors import EngineError, MeasurementError
from specmoe.hardware.machine import text_of
from specmoe.text import exit_status

LOG_LINES_SHOWN = 15


def start_guarded(
    command: list[str], out: IO[bytes], error: IO[bytes] | int, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Start a command, whose guard ends it when its standard input is closed."""
    return subprocess.Popen(
        # -I -S: the guard needs neither site-packages nor the environment, and starts faster.
        [sys.executable, "-I", "-S", supervise.__file__, *command],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=error,
        start_new_session=True,
        env=environment,
    )


def end_guarded(process: "subprocess.Popen[bytes]") -> None:
    """End what `start_guarded` started, and wait for it."""
    assert process.stdin is not None
    process.stdin.close()
    if process.wait() < 0:  # the guard was killed, and its command is left in its group
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _begin(command: list[str], log: IO[bytes]) -> int:
    """Write a command to a log, and return where its output starts."""
    log.write(f"$ {shlex.join(command)}\n".encode())
    log.flush()
    return log.tell()


def run_tool(
    command: list[str], log: Path, limit_s: float, environment: Mapping[str, str]
) -> tuple[str, str]:
    """Run a tool of the engine, and return what it printed: to standard output, and to error.

    `log` receives its command and standard error; `environment` is all that it has. It ends when
    this process ends. Raises MeasurementError if it fails or takes longer than `limit_s`.
    """
    name = Path(command[0]).name
    with tempfile.TemporaryFile() as out, log.open("ab+") as error:
        start = _begin(command, error)
        with start_guarded(command, out, error, environment) as process:
            try:
                code = process.wait(limit_s)
                failure = f"{name} failed ({exit_status(code)})" if code else ""
            except subprocess.TimeoutExpired:
                failure = f"timeout: {name} took longer than {limit_s:g} s"
                failure += " (measurement.time_limit_s)"
            finally:
                end_guarded(process)
        out.seek(0)
        error.seek(start)
        text, logged = (file.read().decode(errors="replace") for file in (out, error))
    if failure:
        raise with_end_of_log(failure, logged, log)
    return text, logged


def run_build_tool(command: list[str], log: Path, error: str) -> None:
    """Run a tool that builds; `log` receives its command and what it prints, behind all else.

    Raises EngineError with `error` and the tool's last lines if it fails or is not installed.
    """
    if not shutil.which(command[0]):
        raise EngineError(f"{error}: no {command[0]} found; install it")
    with log.open("ab+") as output:
        start = _begin(command, output)
        environment = build_environment(os.environ)
        done = subprocess.run(command, stdout=output, stderr=output, env=environment, check=False)
        output.seek(start)
        printed = output.read().decode(errors="replace")
    if done.returncode != 0:
        ended = f"{command[0]} ended with code {done.returncode}; its last lines:"
        raise EngineError(f"{error}: {ended}{_last_lines(printed)}")


def count_failures(log: str) -> int:
    """Return how many decodes failed; an engine logs a failure, its cause, or both."""
    lines = data("engine_rules")["log"]
    return max(len(re.findall(lines[kind], log)) for kind in ("failure", "cause"))


def with_end_of_log(reason: str, text: str, log: Path) -> MeasurementError:
    """Return an error with `reason` and the end of `text`, which is in the file `log`."""
    return MeasurementError(f"{reason}; the end of {log}:{_last_lines(text)}")


def _last_lines(text: str) -> str:
    return "".join(f"\n  | {line}" for line in text.splitlines()[-LOG_LINES_SHOWN:])


def peak_rss_bytes() -> int:
    """Return the largest peak memory of the processes that have ended so far, in bytes."""
    # The only children are guards and, through them, their commands.
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def living_peak_bytes(pid: int) -> int | None:
    """Return the peak memory of a process, in bytes; None where the system does not say (macOS)."""
    match = re.search(r"^VmHWM:\s*(\d+) kB", text_of(Path(f"/proc/{pid}/status")), re.MULTILINE)
    return int(match[1]) * 1024 if match else None
