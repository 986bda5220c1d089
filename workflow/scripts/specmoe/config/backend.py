"""The backends of llama.cpp, and the one this machine has."""

import platform
import shutil
from enum import StrEnum
from pathlib import Path


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
