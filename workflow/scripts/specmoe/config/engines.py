"""The entries of `engines`: sources of llama.cpp, backends, and options of its programs.

Its processes are given an environment, and words of the command line.
"""

import platform
import re
import shutil
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

from specmoe.config.base import Digest, Strict, UserPath, resource
from specmoe.errors import MeasurementError

PackageVersion = Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.]*$")]
"""Version of a package of the Python package index."""

NGRAM_MAKER = "llama-lookup-create"
"""Makes files of n-grams and measures nothing, so an engine is the same with and without it."""

PROGRAM = "model_passes"  # our own, beside the folder of an engine's programs
ID_DIGITS = 8  # at the end of an engine's id, see specmoe/engine/identity.py

# Before this build llama-server counts wrongly what is accepted where it restores a target's state
# after a rejection: of hybrid targets, and of those with a sliding window (llama.cpp #26320).
COUNTS_SINCE = 10210


class PypiEngine(Strict):
    """The llama.cpp in a source distribution of llama-cpp-python."""

    source: Literal["pypi"]
    commit: str = Field(pattern=r"^[0-9a-f]{7,40}$")
    """commit of llama.cpp, as rows record it"""
    cmake: dict[str, str] = Field(default={})
    """CMake definitions, all strings"""
    version: PackageVersion
    """version of llama-cpp-python"""
    sha256: Digest
    """SHA-256 of the source distribution"""


class PathEngine(Strict):
    """Binaries that you already have."""

    source: Literal["path"]
    path: UserPath
    """folder of `llama-server`, or one with `bin` or `build/bin`; shared libraries are beside the
    programs or in `../lib`. Models of kind `quantize` need `llama-quantize` too, those of kind
    `ngram_cache` `llama-lookup-create`, protocol `study` `llama-bench` and `llama-speculative`"""
    commit: str = "unknown"
    """commit of llama.cpp, as rows record it; with the build's number, if llama-server tells it"""

    @property
    def folder(self) -> Path:
        """The folder of its programs; the one that is given, if they are in none of its folders."""
        given = Path(self.path)
        places = (given, given / "bin", given / "build/bin")
        return next((place for place in places if (place / "llama-server").is_file()), given)


Engine = Annotated[PypiEngine | PathEngine, Field(discriminator="source")]


class Backend(StrEnum):
    """A backend of llama.cpp; `auto` stands for the best one of the machine."""

    AUTO = "auto"
    METAL = "metal"
    CUDA = "cuda"
    HIP = "hip"
    VULKAN = "vulkan"
    CPU = "cpu"


CMAKE_FLAGS = {
    Backend.METAL: {"GGML_METAL": "ON"},
    Backend.CUDA: {"GGML_CUDA": "ON"},
    Backend.HIP: {"GGML_HIP": "ON"},
    # On a Mac, Metal would be on too.
    Backend.VULKAN: {"GGML_VULKAN": "ON", "GGML_METAL": "OFF"},
    Backend.CPU: {"GGML_METAL": "OFF"},
}

COPYING = (Backend.CUDA, Backend.HIP, Backend.VULKAN)
"""The backends whose processes each copy their weights to the memory of a device."""

# The PCI numbers of AMD, Intel and NVIDIA. GPUs of virtual machines only draw.
_GPU_VENDORS = ("0x1002", "0x8086", "0x10de")


def detect_backend(configured: Backend, devices: Path = Path("/sys/class/drm")) -> Backend:
    """Return the configured backend, or for `auto` the best one of this machine.

    A GPU counts only if both its driver and the tools to build for it are there.
    """
    if configured != Backend.AUTO:
        return configured
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return Backend.METAL
    if shutil.which("nvcc") and shutil.which("nvidia-smi"):
        return Backend.CUDA
    if shutil.which("hipconfig") and shutil.which("rocminfo"):
        return Backend.HIP
    gpus = (vendor.read_text().strip() for vendor in devices.glob("renderD*/device/vendor"))
    if shutil.which("glslc") and any(vendor in _GPU_VENDORS for vendor in gpus):
        return Backend.VULKAN
    return Backend.CPU


_VARIABLES = resource("engine_rules")["environment"]  # of an engine's processes and its build
_steers = re.compile(_VARIABLES["steering"]).fullmatch


def engine_environment(given: Mapping[str, str], exported: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of an engine process.

    `given` is `measurement.environment` of the configuration, `exported` the environment of this
    process, from which only those that are passed are taken.
    """
    passed = {name: exported[name] for name in _VARIABLES["passed"] if name in exported}
    return passed | {"LC_ALL": "C.UTF-8"} | dict(given)  # some locales write numbers with a comma


def build_environment(exported: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which an engine is fetched and built.

    Compiler flags come from the engine's `cmake` definitions only, because its id covers them.
    Variables may name the compiler; `engine.json` records it.
    """
    flags = _VARIABLES["compiler_flags"]
    return {name: value for name, value in exported.items() if name not in flags}


def _check_variable(name: str) -> str:
    if re.fullmatch(_VARIABLES["refused"], name):
        raise ValueError(f"{name!r} is refused: other keys or the protocol decide it; leave it out")
    if not _steers(name):
        raise ValueError(f"{name!r} does not set up how an engine computes; leave it out")
    return name


EngineVariable = Annotated[str, AfterValidator(_check_variable)]


def refuse_exported(given: Iterable[str], exported: Iterable[str]) -> None:
    """Raise MeasurementError if variables that steer the engine are exported and not given.

    They would not reach the engine, although their user expects it.
    """
    if strange := sorted(filter(_steers, set(exported) - set(given))):
        unset = " ".join(f"-u {name}" for name in strange)
        raise MeasurementError(
            f"{', '.join(strange)} would set up the engine from outside the configuration: call env"
            f" {unset} snakemake ..., and set what you need in measurement.environment or, if it is"
            " a flag of llama-server, by its own key"
        )


FLAG = re.compile(r"-(?!\.?\d).*")  # and no negative number


def _check_flags(words: list[str], *, of_arm: bool = False) -> list[str]:
    """Return words; raises ValueError for a flag that another key decides, for an arm or all."""
    rules = resource("engine_rules")
    refused = rules["flags"] | (rules["flags_of_all_arms"] if of_arm else {})
    own = rules["flags_of_an_arm"] if of_arm else []
    for word in filter(FLAG.fullmatch, words):
        # The engine reads `_` as `-`. Only names of one dash differ by their letters' case.
        name = word.lstrip("-").partition("=")[0].replace("_", "-")
        name = name.lower() if word.startswith("--") else name
        for key, patterns in refused.items():
            if name not in own and any(fnmatchcase(name, pattern) for pattern in patterns):
                raise ValueError(f"{word} is refused: {key} decides it")
    return words


_Word = Annotated[
    str,
    Field(coerce_numbers_to_str=True, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]+$"),  # which can be printed
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]
EngineArgs = Annotated[list[_Word], AfterValidator(_check_flags)]
ArmArgs = Annotated[list[_Word], AfterValidator(partial(_check_flags, of_arm=True))]
"""Those of an arm alone, which may say how many layers are on a GPU."""
