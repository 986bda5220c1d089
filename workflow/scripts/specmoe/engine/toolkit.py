"""What must be installed to build llama.cpp for a backend, and which of it CMake did not find."""

import re
from pathlib import Path

from specmoe.config.backend import Backend
from specmoe.engine.machine_id import text_of

# The names of packages are Debian's and Ubuntu's.
TOOLKIT = {
    Backend.CUDA: "the CUDA toolkit (nvidia-cuda-toolkit)",
    Backend.HIP: "ROCm 6.1 or later (hipcc, libhipblas-dev, librocblas-dev)",
    Backend.VULKAN: "a shader compiler, and a loader and headers of 1.3.272 or later (glslc,"
    " libvulkan-dev, spirv-headers)",
}

# What CMake records of each part: FindVulkan.cmake, and ggml/src/ggml-vulkan/CMakeLists.txt.
_PARTS = {
    "Vulkan_GLSLC_EXECUTABLE": "the shader compiler glslc (package glslc)",
    "Vulkan_LIBRARY": "Vulkan's loader (package libvulkan-dev)",
    "Vulkan_INCLUDE_DIR": "Vulkan's headers (package libvulkan-dev)",
    "SPIRV-Headers_DIR": "SPIR-V's headers (package spirv-headers)",
}
# VK_EXT_layer_settings came with 1.3.272; Debian 12 has 1.3.239. The version is in two lines.
_OLDEST_HEADERS = (1, 3, 272)
_VERSION = re.compile(
    r"^#define VK_HEADER_VERSION (\d+)$.*?"
    r"^#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\(0, (\d+), (\d+),",
    re.MULTILINE | re.DOTALL,
)


def missing_part(backend: Backend, build: Path) -> str | None:
    """Return what a build for a backend lacks by CMake's cache in `build`, in words for the user.

    Only Vulkan's parts are known one by one. None if all of them are there or CMake ended before it
    looked for them.
    """
    if backend != Backend.VULKAN:
        return None
    cache = text_of(build / "CMakeCache.txt")
    found = dict(re.findall(r"^([\w-]+):\w+=(.*)$", cache, re.MULTILINE))
    for part, name in _PARTS.items():
        if found.get(part, "").endswith("-NOTFOUND"):
            return f"{name} is missing"
    folder = found.get("Vulkan_INCLUDE_DIR")
    match = _VERSION.search(text_of(Path(folder, "vulkan/vulkan_core.h"))) if folder else None
    if match is None:
        return None
    patch, major, minor = map(int, match.groups())
    if (major, minor, patch) >= _OLDEST_HEADERS:
        return None
    return (
        f"Vulkan's headers in {folder} are {major}.{minor}.{patch}, and 1.3.272 or later is needed"
        " (package libvulkan-dev of Debian 13, or a folder with newer `include` and `lib` in"
        " VULKAN_SDK)"
    )
