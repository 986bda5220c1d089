"""Where llama.cpp comes from, the entries of `engines`; and what it computes on."""

import platform
import re
import shutil
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from specmoe.config.base import COMMIT, Digest, Strict, UserPath

PackageVersion = Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.]*$")]
"""Version of a package of the Python package index."""

NGRAM_MAKER = "llama-lookup-create"
"""Makes files of n-grams and measures nothing, so an engine is the same with and without it."""

ID_DIGITS = 8  # at the end of an engine's id, see specmoe/engine/identity.py


def without_digits(engine_id: str) -> str:
    """Return an id's name and backend, which identify an engine within one campaign."""
    return re.sub(rf"-[0-9a-f]{{{ID_DIGITS}}}$", "", engine_id)


class EngineBuild(Strict):
    """An engine that is built from source."""

    commit: str = Field(pattern=COMMIT)
    """commit of llama.cpp; of a git repository it is checked"""
    cmake: dict[str, str] = Field(default={})
    """CMake definitions, all strings"""
    fallbacks: list[dict[str, str]] = Field(default=[])
    """definitions to add to `cmake`, tried in turn when the finished engine fails its self-test"""


class PypiEngine(EngineBuild):
    """The llama.cpp in a source distribution of llama-cpp-python."""

    source: Literal["pypi"]
    version: PackageVersion
    """version of llama-cpp-python"""
    sha256: Digest
    """SHA-256 of the source distribution"""


class GitEngine(EngineBuild):
    """A tag of a git repository; specmoe checks its commit."""

    source: Literal["git"]
    url: str
    """the repository"""
    tag: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
    """tag to check out"""


class PathEngine(Strict):
    """Binaries that you already have."""

    source: Literal["path"]
    path: UserPath
    """folder of `llama-server`, `llama-quantize` and `llama-bench` (for protocol `published` also
    `llama-speculative`, for models of kind `ngram_cache` also `llama-lookup-create`), with the
    shared libraries they load, if any"""
    commit: str = "unknown"
    """commit of llama.cpp, as rows record it"""


Engine = Annotated[PypiEngine | GitEngine | PathEngine, Field(discriminator="source")]


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


def detect_backend(asked: Backend, devices: Path = Path("/sys/class/drm")) -> Backend:
    """Return the configured backend, or for `auto` the best one of this machine.

    A GPU counts only if both its driver and the tools to build for it are there.
    """
    if asked != Backend.AUTO:
        return asked
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return Backend.METAL
    if shutil.which("nvcc") and shutil.which("nvidia-smi"):
        return Backend.CUDA
    if shutil.which("hipconfig") and shutil.which("rocminfo"):
        return Backend.HIP
    if shutil.which("glslc") and _has_gpu(devices):
        return Backend.VULKAN
    return Backend.CPU


def _has_gpu(devices: Path) -> bool:
    vendors = devices.glob("renderD*/device/vendor")
    return any(vendor.read_text().strip() in _GPU_VENDORS for vendor in vendors)
