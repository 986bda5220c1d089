"""Whether the processor runs what a build of llama.cpp would make of it.

Some virtual machines list instruction sets that they trap. Building for them takes many minutes and
ends in an engine that dies; a program of a few lines, compiled with the same flags, says so in a
second.
"""

import os
import platform
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from specmoe.config.environment import build_environment

PROBE = Path(__file__).with_suffix(".cpp")
LIMIT_S = 60.0

_COMPILERS = ("c++", "g++", "clang++")
_X86 = ("x86_64", "amd64", "i386", "i686")
_OFF = ("OFF", "NO", "FALSE", "N", "0", "")
# What other signals end, an interrupt among them, says nothing of the processor.
_TRAPS = (signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGTRAP)
# Without GGML_NATIVE, by definition: its default and its flags (ggml/CMakeLists.txt,
# ggml/src/ggml-cpu/CMakeLists.txt).
_X86_SETS = {
    "GGML_SSE42": ("ON", "-msse4.2"),
    "GGML_F16C": ("ON", "-mf16c"),
    "GGML_FMA": ("ON", "-mfma"),
    "GGML_BMI2": ("ON", "-mbmi2"),
    "GGML_AVX": ("ON", "-mavx"),
    "GGML_AVX2": ("ON", "-mavx2"),
    "GGML_AVX512": ("OFF", "-mavx512f -mavx512cd -mavx512vl -mavx512dq -mavx512bw"),
    "GGML_AVX512_VNNI": ("OFF", "-mavx512vnni"),
    "GGML_AMX_TILE": ("OFF", "-mamx-tile"),
    "GGML_AMX_INT8": ("OFF", "-mamx-int8"),
}


class Outcome(StrEnum):
    """What became of the probe."""

    RAN = "ran"
    TRAPPED = "trapped"
    UNKNOWN = "unknown"  # it was not compiled, or ended for another reason


class Answer(NamedTuple):
    """What became of the probe, and the name of the signal that ended it, if it trapped."""

    outcome: Outcome
    signal: str = ""


def ask_processor(definitions: Mapping[str, str], folder: Path, output: int) -> Answer:
    """Compile the probe with what CMake's definitions amount to, run it, and say how it ended.

    It is compiled and run in a folder of its own in `folder`; what the compiler says goes to the
    file `output`.
    """
    with tempfile.TemporaryDirectory(prefix="probe-", dir=folder) as scratch:
        program = Path(scratch, "probe").absolute()
        command = [*compiler_command(definitions), *compiler_flags(definitions)]
        if _run([*command, str(PROBE), "-o", str(program)], scratch, output) != 0:
            return Answer(Outcome.UNKNOWN)
        code = _run([str(program)], scratch, output)
    if code == 0:
        return Answer(Outcome.RAN)
    if code is not None and -code in _TRAPS:
        return Answer(Outcome.TRAPPED, signal.Signals(-code).name)
    return Answer(Outcome.UNKNOWN)


def compiler_command(definitions: Mapping[str, str]) -> list[str]:
    """Return the C++ compiler that CMake would take, with its arguments; nothing if it has none."""
    if "CMAKE_CXX_COMPILER" in definitions:
        return [definitions["CMAKE_CXX_COMPILER"]]
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    return [found for found in map(shutil.which, _COMPILERS) if found][:1]


def compiler_flags(definitions: Mapping[str, str], machine: str | None = None) -> list[str]:
    """Return the flags that llama.cpp is compiled with, as far as they choose instructions.

    `machine` is the kind of processor, by default this one's.
    """
    flags = shlex.split(definitions.get("CMAKE_CXX_FLAGS", ""))
    is_x86 = (machine or platform.machine()).lower() in _X86
    if _is_on(definitions.get("GGML_NATIVE", "ON")):
        return [*flags, "-march=native" if is_x86 else "-mcpu=native"]
    if is_x86:
        for name, (default, turned_on) in _X86_SETS.items():
            if _is_on(definitions.get(name, default)):
                flags += turned_on.split()
    return flags


def _is_on(value: str) -> bool:
    return value.upper() not in _OFF


def _run(command: list[str], folder: str, output: int) -> int | None:
    """Run a command in a folder; return its exit code, or nothing if it did not start or end."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=build_environment(os.environ),
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode
