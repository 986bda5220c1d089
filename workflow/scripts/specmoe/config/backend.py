"""What llama.cpp computes on."""

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
    """Return the backend asked for, or for `auto` the best one this machine has."""
    if asked != Backend.AUTO:
        return asked
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return Backend.METAL
    # The driver alone runs CUDA programs; building them takes the toolkit too.
    if shutil.which("nvcc") and shutil.which("nvidia-smi"):
        return Backend.CUDA
    return Backend.CPU
