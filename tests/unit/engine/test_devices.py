"""The devices that an engine lists, and what is said where it lists none."""

import pytest

from specmoe.config.backend import Backend
from specmoe.engine.devices import Device, list_devices, require_device
from specmoe.errors import EngineError

MIB = 2**20
LISTED = """\
Available devices:
  Vulkan0: AMD Radeon RX 7900 XTX (RADV NAVI31) (24560 MiB, 24100 MiB free)
  Vulkan1: Intel(R) UHD Graphics 770 (ADL-S GT1) (23921 MiB, 23921 MiB free)
"""
NONE = "Available devices:\n  (none)\n"
ONE = "Available devices:\n  {}0: a GPU (1024 MiB, 1000 MiB free)\n"


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


def test_devices_have_the_engines_name_a_description_and_their_memory(server, tmp_path):
    assert list_devices(server(LISTED), {"GGML_VK_VISIBLE_DEVICES": "1"}) == [
        Device("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 24560 * MIB),
        Device("Vulkan1", "Intel(R) UHD Graphics 770 (ADL-S GT1)", 23921 * MIB),
    ]
    assert (tmp_path / "chosen").read_text() == "1\n"  # by the configuration
    assert list_devices(server(NONE), {}) == []


@pytest.mark.parametrize(
    ("backend", "own", "words"),
    [
        (Backend.VULKAN, "Vulkan", "backend vulkan: .*mesa-vulkan-drivers.*nvidia-vulkan-icd"),
        (Backend.CUDA, "CUDA", "backend cuda: `nvidia-smi` must list a GPU"),
        (Backend.HIP, "ROCm", "backend hip: `rocminfo` must list a GPU"),
    ],
)
def test_an_engine_without_a_device_of_its_backend_is_refused_with_what_to_install(
    server, backend, own, words
):
    require_device(backend, server(ONE.format(own)), {})
    for listed in (NONE, ONE.format("MTL")):  # of another backend
        with pytest.raises(EngineError, match=f"no device for {words}"):
            require_device(backend, server(listed), {})


@pytest.mark.parametrize("backend", [Backend.CPU, Backend.METAL])
def test_a_backend_without_a_driver_that_somebody_installs_needs_no_device(server, backend):
    require_device(backend, server(NONE), {})


def test_an_engine_that_cannot_list_devices_is_believed(server, tmp_path):
    assert list_devices(server("error: invalid argument", code=1), {}) is None
    require_device(Backend.VULKAN, tmp_path / "llama-server", {})
    assert list_devices(tmp_path / "absent", {}) is None


def test_a_software_driver_is_told_from_a_gpu():
    assert Device("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)", MIB).is_software
    assert not Device("Vulkan0", "NVIDIA H200", MIB).is_software
