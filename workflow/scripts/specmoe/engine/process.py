"""The engine's processes: how they end, what they log of themselves, and a tool run to its end."""

import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from specmoe.engine.supervise import guarded
from specmoe.errors import MeasurementError

LOG_LINES_SHOWN = 15
# llama_decode logs that it failed; llama_process, which later engines call, leaves it at the cause
# (llama.cpp, src/llama-context.cpp).
_FAILURE = re.compile(r"failed to decode")
_CAUSE = re.compile(
    r"\bdecode: (?:failed to initialize batch|failed to find a memory slot"
    r"|compute failed while preparing batch|could not reserve space|n_tokens == 0)"
)


class Output(NamedTuple):
    """What a tool printed to its standard output, and to its standard error."""

    text: str
    log: str


def run_tool(
    command: list[str], log: Path, limit_s: float, environment: Mapping[str, str]
) -> Output:
    """Run a tool of the engine to its end; its command and standard error are added to `log`.

    `environment` is all that the tool's holds, see `environment.engine_environment`. The tool ends
    when this process does. Raises MeasurementError, with the end of what the tool logged, if it
    fails or takes longer than `limit_s`.
    """
    name = Path(command[0]).name
    with tempfile.TemporaryFile() as out, log.open("ab+") as error:
        error.write(f"$ {shlex.join(command)}\n".encode())
        error.flush()
        start = error.tell()
        with subprocess.Popen(
            guarded(command),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=error,
            start_new_session=True,
            env=environment,
        ) as process:
            assert process.stdin is not None
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                process.stdin.close()
        out.seek(0)
        error.seek(start)
        text, logged = (file.read().decode(errors="replace") for file in (out, error))
    if code is None:
        raise with_end_of_log(
            f"timeout: {name} took longer than {limit_s:g} s (measurement.run_limit_s)", logged, log
        )
    if code != 0:
        raise with_end_of_log(f"{name} failed ({exit_words(code)})", logged, log)
    return Output(text, logged)


def count_decode_failures(log: str) -> int:
    """Return how many calls of the engine's decode have failed, by what it logged.

    An engine logs a failure, its cause, or both; there are as many as of the line logged more
    often.
    """
    return max(len(_FAILURE.findall(log)), len(_CAUSE.findall(log)))


def with_end_of_log(reason: str, text: str, log: Path) -> MeasurementError:
    """Return an error that says `reason` and shows the end of `text`, which stands in `log`."""
    lines = text.splitlines()[-LOG_LINES_SHOWN:]
    return MeasurementError(
        f"{reason}; the end of {log}:\n" + "\n".join(f"  | {line}" for line in lines)
    )


def peak_rss_bytes() -> int:
    """Return the most memory that any process started and ended so far has had in use."""
    # A guard and, through it, its command are the only children waited for.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def exit_words(code: int) -> str:
    """Say an exit code in words; above 128 it is the number of a signal plus 128."""
    try:
        return f"killed by {signal.Signals(code - 128).name}"
    except ValueError:
        return f"exit code {code}"
