"""The environment of the engine's processes, which do not inherit the user's.

llama.cpp reads every flag from an environment variable too (`LLAMA_ARG_SPEC_TYPE` lets a baseline
speculate), and its backends and OpenMP read more.
"""

import re
from collections.abc import Iterable, Mapping

from specmoe.errors import MeasurementError

# The engine finds its libraries, drivers and temporary files by these. They do not change what it
# computes.
PASSED = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR"]
PASSED += ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CUDA_CACHE_PATH", "ROCM_PATH", "HIP_PATH"]
PASSED += ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"]
# Some locales write numbers with a comma.
LOCALE = {"LC_ALL": "C.UTF-8"}

_COMPILER_FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CUDAFLAGS", "HIPFLAGS")

# Variables that set up llama.cpp, its backends and its threads. Others, such as those of BLAS
# libraries, are dropped without a message, because systems set them for programs of all kinds.
_STEERING = re.compile(
    r"(LLAMA|GGML|OMP|GOMP|KMP|CUDA|HIP|ROCR|HSA|MTL|METAL|VK|SYCL|ONEAPI|ZE)_\w+"
)
# They give a place or version of something installed; dropped silently unless they are in PASSED.
_PLACE = re.compile(r"\w+_(HOME|PATH|ROOT|DIR|DIRS|CACHE|FILES|FILENAMES|VERSION)")
# These would override the command line, which the configuration decides, or the server's trace.
_REFUSED = re.compile(r"LLAMA_ARG_\w+|LLAMA_TRACE")


def engine_environment(given: Mapping[str, str], exported: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of an engine process.

    `given` is `measurement.environment` of the configuration, `exported` the environment of this
    process, from which only `PASSED` is taken.
    """
    passed = {name: exported[name] for name in PASSED if name in exported}
    return passed | LOCALE | dict(given)


def build_environment(exported: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which an engine is fetched and built.

    Compiler flags come from the engine's `cmake` definitions only, because its id covers them.
    Variables may name the compiler; `engine.json` records it.
    """
    return {name: value for name, value in exported.items() if name not in _COMPILER_FLAGS}


def steers(name: str) -> bool:
    """Return whether a variable sets up how the engine computes."""
    return bool(_STEERING.fullmatch(name)) and not _PLACE.fullmatch(name)


def may_be_given(name: str) -> bool:
    """Return whether `measurement.environment` may contain a variable."""
    return steers(name) and not _REFUSED.fullmatch(name)


def refuse_exported(given: Iterable[str], exported: Iterable[str]) -> None:
    """Raise MeasurementError if variables that steer the engine are exported and not given.

    They would not reach the engine, although their user expects it.
    """
    strange = sorted(filter(steers, set(exported) - set(given)))
    if not strange:
        return
    unset = " ".join(f"-u {name}" for name in strange)
    raise MeasurementError(
        f"{', '.join(strange)} would set up the engine from outside the configuration: call env"
        f" {unset} snakemake ..., and set what you need in measurement.environment or, if it is a"
        " flag of llama-server, by its own key"
    )
