"""The backend that `auto` stands for, on planted machines."""

import platform
import shutil

import pytest

from specmoe.config.engines import CMAKE_FLAGS, Backend, detect_backend


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Detect the backend of a Linux machine with these tools and GPUs, by their PCI vendors."""

    def detect(tools, vendors=()):
        monkeypatch.setattr(platform, "system", lambda: "Linux")
        monkeypatch.setattr(shutil, "which", lambda tool: tool if tool in tools else None)
        for number, vendor in enumerate(vendors):
            folder = tmp_path / f"renderD{128 + number}" / "device"
            folder.mkdir(parents=True)
            (folder / "vendor").write_text(f"{vendor}\n")
        return detect_backend(Backend.AUTO, tmp_path)

    return detect


@pytest.mark.parametrize(
    ("tools", "vendors", "found"),
    [
        (["nvcc", "nvidia-smi", "glslc"], ["0x10de"], Backend.CUDA),
        (["hipconfig", "rocminfo", "glslc"], ["0x1002"], Backend.HIP),
        (["glslc"], ["0x1002"], Backend.VULKAN),
        (["glslc", "nvidia-smi"], ["0x8086", "0x10de"], Backend.VULKAN),
        # Without a GPU, the tools alone give nothing; nor does a GPU without them.
        (["glslc"], [], Backend.CPU),
        (["hipconfig"], ["0x1002"], Backend.CPU),
        ([], ["0x10de"], Backend.CPU),
        (["glslc"], ["0x1af4"], Backend.CPU),  # a virtual machine's
    ],
)
def test_auto_is_the_best_backend_whose_gpu_and_tools_are_present(machine, tools, vendors, found):
    assert machine(tools, vendors) == found


def test_on_apple_silicon_auto_is_metal_and_a_backend_that_is_named_is_taken(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert detect_backend(Backend.AUTO) == Backend.METAL
    assert [detect_backend(asked) for asked in CMAKE_FLAGS] == list(CMAKE_FLAGS)
    assert {*CMAKE_FLAGS} == {*Backend} - {Backend.AUTO}
