"""Whether the processor runs the instructions that a build of llama.cpp would use.

Some virtual machines list instruction sets that they trap. A build for those takes many minutes and
crashes; a probe of a few lines, compiled with the same flags, crashes within a second.
"""

import os
import platform
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.environment import build_environment

PROBE = Path(__file__).with_suffix(".cpp")
LIMIT_S = 60.0

_COMPILERS = ("c++", "g++", "clang++")
_X86 = ("x86_64", "amd64", "i386", "i686")
_OFF = ("OFF", "NO", "FALSE", "N", "0", "")
# Other signals, such as an interrupt, say nothing about the processor.
_TRAPS = (signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGTRAP)
# Default and flags of each definition, used without GGML_NATIVE (ggml/CMakeLists.txt,
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


def probe_processor(definitions: Mapping[str, str], folder: Path, output: int) -> str | None:
    """Compile the probe with the flags that CMake's definitions give, and run it.

    Returns the name of the signal by which the processor traps it, empty if it ran; None if it did
    not compile, or ended for another reason. Both happen in a temporary folder in `folder`; the
    file `output` receives what they print.
    """
    with tempfile.TemporaryDirectory(prefix="probe-", dir=folder) as scratch:
        program = Path(scratch, "probe").absolute()
        command = [*compiler_command(definitions), *compiler_flags(definitions)]
        if _run([*command, str(PROBE), "-o", str(program)], scratch, output) != 0:
            return None
        code = _run([str(program)], scratch, output)
    if code is not None and -code in _TRAPS:
        return signal.Signals(-code).name
    return "" if code == 0 else None


def compiler_command(definitions: Mapping[str, str]) -> list[str]:
    """Return the C++ compiler that CMake would take, with its arguments; empty if there is none."""
    if "CMAKE_CXX_COMPILER" in definitions:
        return [definitions["CMAKE_CXX_COMPILER"]]
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    found = next(filter(None, map(shutil.which, _COMPILERS)), None)
    return [found] if found else []


def compiler_flags(definitions: Mapping[str, str], machine: str | None = None) -> list[str]:
    """Return the flags of llama.cpp's build that choose instructions.

    `machine` is the processor's architecture, by default this machine's.
    """
    flags = shlex.split(definitions.get("CMAKE_CXX_FLAGS", ""))
    is_x86 = (machine or platform.machine()).lower() in _X86
    if definitions.get("GGML_NATIVE", "ON").upper() not in _OFF:
        return [*flags, "-march=native" if is_x86 else "-mcpu=native"]
    if is_x86:
        for name, (default, turned_on) in _X86_SETS.items():
            if definitions.get(name, default).upper() not in _OFF:
                flags += turned_on.split()
    return flags


def _run(command: list[str], folder: str, output: int) -> int | None:
    """Return a command's exit code; None if it did not start, or did not end in time."""
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
