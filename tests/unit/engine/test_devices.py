"""The devices that an engine lists, and what is said where it lists none."""

import pytest

from specmoe.config.backend import Backend
from specmoe.engine.devices import Device, list_devices, read_devices, require_device
from specmoe.errors import EngineError

MIB = 2**20
LISTED = """\
Available devices:
  Vulkan0: AMD Radeon RX 7900 XTX (RADV NAVI31) (24560 MiB, 24100 MiB free)
  Vulkan1: Intel(R) UHD Graphics 770 (ADL-S GT1) (23921 MiB, 23921 MiB free)
"""
NONE = "Available devices:\n  (none)\n"


@pytest.fixture
def server(tmp_path):
    """Write a llama-server that prints a list; returns its path."""

    def write(text, code=0):
        (tmp_path / "list").write_text(text)
        program = tmp_path / "llama-server"
        program.write_text(
            f'#!/bin/sh\necho "$GGML_VK_VISIBLE_DEVICES" >{tmp_path}/chosen\n'
            f"[ $1 = --list-devices ] && cat {tmp_path}/list\nexit {code}\n"
        )
        program.chmod(0o755)
        return program

    return write


def test_devices_have_the_engines_name_a_description_and_their_memory():
    assert read_devices(LISTED) == [
        Device("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 24560 * MIB),
        Device("Vulkan1", "Intel(R) UHD Graphics 770 (ADL-S GT1)", 23921 * MIB),
    ]
    assert read_devices(NONE) == []


def test_the_engine_lists_the_devices_that_the_configuration_chooses(server, tmp_path):
    program = server(LISTED)
    found = list_devices(program, {"GGML_VK_VISIBLE_DEVICES": "1"})
    assert [device.name for device in found] == ["Vulkan0", "Vulkan1"]
    assert (tmp_path / "chosen").read_text() == "1\n"


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (Backend.VULKAN, "no device for backend vulkan: .*mesa-vulkan-drivers.*nvidia-vulkan-icd"),
        (Backend.CUDA, "no device for backend cuda: `nvidia-smi` must list a GPU"),
        (Backend.HIP, "no device for backend hip: `rocminfo` must list a GPU"),
    ],
)
def test_an_engine_without_a_device_of_its_backend_is_refused_with_what_to_install(
    server, backend, words
):
    with pytest.raises(EngineError, match=words):
        require_device(backend, server(NONE), {})
    # Another backend's device is none.
    with pytest.raises(EngineError, match=words):
        require_device(backend, server("  MTL0: Apple M2 (1024 MiB, 1024 MiB free)\n"), {})


@pytest.mark.parametrize(
    ("backend", "listed"),
    [
        (Backend.VULKAN, "  Vulkan0: a GPU (1024 MiB, 1000 MiB free)\n"),
        (Backend.CUDA, "  CUDA0: a GPU (1024 MiB, 1000 MiB free)\n"),
        (Backend.HIP, "  ROCm0: a GPU (1024 MiB, 1000 MiB free)\n"),
        # These need no driver that somebody installs.
        (Backend.CPU, NONE),
        (Backend.METAL, NONE),
    ],
)
def test_an_engine_with_a_device_of_its_backend_is_accepted(server, backend, listed):
    require_device(backend, server(listed), {})


def test_an_engine_that_cannot_list_devices_is_believed(server, tmp_path):
    assert list_devices(server("error: invalid argument", code=1), {}) is None
    require_device(Backend.VULKAN, tmp_path / "llama-server", {})
    assert list_devices(tmp_path / "absent", {}) is None


def test_a_software_driver_is_told_from_a_gpu():
    assert Device("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)", MIB).is_software
    assert not Device("Vulkan0", "NVIDIA H200", MIB).is_software
