"""What a build for Vulkan lacks is named with its package; nothing is said of what is there."""

import pytest

from specmoe.config.backend import Backend
from specmoe.engine.build import Build
from specmoe.engine.toolkit import missing_part
from specmoe.errors import EngineError

PARTS = {
    "Vulkan_GLSLC_EXECUTABLE": "glslc",
    "Vulkan_LIBRARY": "libvulkan-dev",
    "Vulkan_INCLUDE_DIR": "libvulkan-dev",
    "SPIRV-Headers_DIR": "spirv-headers",
}
# As Debian 12's file has it.
HEADER = """\
// Version of this file
#define VK_HEADER_VERSION 239

// Complete version of this file
#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, 3, VK_HEADER_VERSION)
"""
NEW_HEADER = HEADER.replace("239", "272")


@pytest.fixture
def plant(tmp_path):
    """Write the cache of a build that found everything but some parts, and Vulkan's headers."""

    def write(*missing, header=NEW_HEADER):
        (tmp_path / "vulkan").mkdir(exist_ok=True)
        (tmp_path / "vulkan/vulkan_core.h").write_text(header)
        lines = [f"{part}:PATH={part}-NOTFOUND" for part in missing]
        lines += [f"{part}:PATH={tmp_path}" for part in PARTS if part not in missing]
        (tmp_path / "CMakeCache.txt").write_text("\n".join(lines) + "\n")
        return tmp_path

    return write


@pytest.mark.parametrize("part", PARTS)
def test_the_package_of_a_missing_part_is_named(plant, part):
    said = missing_part(Backend.VULKAN, plant(part))
    assert said is not None
    assert said.endswith(f"(package {PARTS[part]}) is missing")


@pytest.mark.parametrize(
    ("version", "patch", "old"),
    [("1, 3", 239, True), ("1, 3", 271, True), ("1, 3", 272, False), ("1, 4", 9, False)],
)
def test_headers_that_are_too_old_are_named_before_the_build(plant, version, patch, old):
    said = missing_part(
        Backend.VULKAN,
        plant(header=HEADER.replace("239", str(patch)).replace("1, 3", version)),
    )
    assert (said is not None) == old
    assert not old or f"are 1.3.{patch}, and 1.3.272 or later is needed" in said


def test_nothing_is_said_of_what_was_not_looked_for(plant, tmp_path):
    assert missing_part(Backend.VULKAN, plant(header="no version")) is None
    assert missing_part(Backend.CUDA, plant("Vulkan_LIBRARY")) is None
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_BUILD_TYPE:STRING=Release\n")
    assert missing_part(Backend.VULKAN, tmp_path) is None
    assert missing_part(Backend.VULKAN, tmp_path / "no build") is None


def test_a_build_without_glslc_ends_in_one_line_with_its_package(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    name = "Vulkan_GLSLC_EXECUTABLE"
    (source / "CMakeLists.txt").write_text(
        f'set({name} {name}-NOTFOUND CACHE FILEPATH "")\nmessage(FATAL_ERROR "no Vulkan")\n'
    )
    with (tmp_path / "log").open("w") as log, pytest.raises(EngineError) as raised:
        Build(source, tmp_path / "build", Backend.VULKAN, log.fileno()).compile({})
    assert str(raised.value) == (
        "llama.cpp cannot be built for backend vulkan: the shader compiler glslc (package glslc)"
        " is missing"
    )
