"""The backends of llama.cpp, and the one this machine has."""

import platform
import shutil
from enum import StrEnum


class Backend(StrEnum):
    """A backend of llama.cpp; `auto` stands for the best one of the machine."""

    AUTO = "auto"
    METAL = "metal"
    CUDA = "cuda"
    CPU = "cpu"


CMAKE_FLAGS = {
    Backend.METAL: {"GGML_METAL": "ON"},
    Backend.CUDA: {"GGML_CUDA": "ON"},
    Backend.CPU: {"GGML_METAL": "OFF"},
}


def detect_backend(asked: Backend) -> Backend:
    """Return the configured backend, or for `auto` the best one of this machine."""
    if asked != Backend.AUTO:
        return asked
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return Backend.METAL
    # Running CUDA programs needs the driver; building them needs the toolkit as well.
    if shutil.which("nvcc") and shutil.which("nvidia-smi"):
        return Backend.CUDA
    return Backend.CPU
