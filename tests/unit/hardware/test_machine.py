"""The id of a machine, and the name of its processor."""

import os
import platform
import re
import socket
import sys
from functools import partial
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from specmoe.config.engines import Backend
from specmoe.errors import EngineError
from specmoe.hardware import machine
from specmoe.hardware.disturbance import Watch, read_condition
from specmoe.hardware.machine import Device, list_devices, require_device, usable_memory

from ...processes import write_program

IOREG = '+-o J475cAP\n    {\n      "IOPlatformUUID" = "01234567-89AB-CDEF-0123-456789ABCDEF"\n'
I7 = "12th Gen Intel(R) Core(TM) i7-12700K"
X86_CPUINFO = f"processor\t: 0\nmodel\t\t: 151\nmodel name\t: {I7}\nprocessor\t: 1\n"
ARM_CPUINFO = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU part\t: 0xd0b\n"
ARM_LSCPU = "Architecture:  aarch64\n  Model name:  Neoverse-V1\n    Model:  1\n"


@pytest.mark.parametrize(
    ("said", "build"),
    [
        ("version: 8323 (9c8d7e6f1)\nbuilt with GNU 12.2.0", ("9c8d7e6f1", 8323)),
        ("version: 0.5.0-dev (build 10210, commit 000547513)", ("000547513", 10210)),
        ("version: 0.5.0-dev (build 0, commit unknown)", ("unknown", 0)),
        ("", ("unknown", 0)),
    ],
)
def test_a_build_tells_its_commit_and_number(tmp_path, said, build):
    assert machine.build_of(write_program(tmp_path / "llama server", f"echo '{said}' >&2")) == build


@pytest.fixture
def put(monkeypatch):
    """Make the system have these files, and a tool that prints a text."""

    def put(files, printed):
        texts = {f"/{path}": text for path, text in files.items()}
        monkeypatch.setattr(machine, "text_of", lambda file: texts.get(str(file), "").strip())
        monkeypatch.setattr(machine, "output_of", lambda *command: printed)

    return put


def test_the_id_of_a_machine_survives_another_name_and_not_other_hardware(monkeypatch):
    monkeypatch.setattr(machine, "text_of", lambda file: "3d1219c7")
    before = machine.machine_id()
    assert re.fullmatch("[0-9a-f]{12}", before)
    monkeypatch.setattr(platform, "node", lambda: "laptop.elsewhere")
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop.elsewhere")
    assert machine.machine_id() == before
    # Machines of one image share the system's id.
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 1000)
    assert machine.machine_id() != before


@pytest.mark.parametrize(
    ("file", "ioreg", "known"),
    [
        ("3d1219c7c4c5404aaa1f6d2a48adfda4\n", IOREG, "3d1219c7c4c5404aaa1f6d2a48adfda4"),
        ("", IOREG, "01234567-89AB-CDEF-0123-456789ABCDEF"),
        ("", "", platform.node()),
    ],
)
def test_a_system_knows_itself_by_its_file_its_platform_or_its_name(put, file, ioreg, known):
    put({"etc/machine-id": file}, ioreg)
    assert machine.system_id() == known


@pytest.mark.parametrize(
    ("system", "cpuinfo", "board", "tool", "name"),
    [
        ("Linux", X86_CPUINFO, "", "", I7),
        ("Linux", ARM_CPUINFO, "Raspberry Pi 5 Model B", "", "Raspberry Pi 5 Model B"),
        ("Linux", ARM_CPUINFO, "", ARM_LSCPU, "Neoverse-V1"),
        ("Linux", "", "", "", platform.processor() or platform.machine()),
        ("Darwin", "", "", "Apple M2 Ultra", "Apple M2 Ultra"),
    ],
)
def test_a_system_names_a_processor_its_board_or_its_cores(
    put, monkeypatch, system, cpuinfo, board, tool, name
):
    monkeypatch.setattr(platform, "system", lambda: system)
    put({"proc/cpuinfo": cpuinfo, "sys/firmware/devicetree/base/model": board}, tool)
    assert machine.processor_name() == name


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["no-such-tool-anywhere"], ""),
        ([sys.executable, "-c", "print('half an answer'); raise SystemExit(1)"], ""),
        ([sys.executable, "-c", "import time; time.sleep(60)"], ""),
        ([sys.executable, "-c", r"import os; os.write(1, b'chip \xff')"], "chip �"),
    ],
)
def test_a_tool_that_is_absent_fails_or_hangs_gives_no_text(monkeypatch, command, text):
    monkeypatch.setattr(machine, "TOOL_LIMIT_S", 2.0)
    assert machine.output_of(*command) == text


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="macOS binds no processes")
def test_a_job_that_is_bound_to_some_cores_computes_on_no_more():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.physical_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


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
        script = f'echo "$GGML_VK_VISIBLE_DEVICES" >{tmp_path}/chosen\n'
        script += f"[ $1 = --list-devices ] && cat {tmp_path}/list\nexit {code}"
        return write_program(tmp_path / "llama-server", script)

    return write


def test_devices_have_the_engines_name_a_description_and_their_memory(server, tmp_path):
    assert list_devices(server(LISTED), {"GGML_VK_VISIBLE_DEVICES": "1"}) == [
        Device("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 24560 * MIB),
        Device("Vulkan1", "Intel(R) UHD Graphics 770 (ADL-S GT1)", 23921 * MIB),
    ]
    assert (tmp_path / "chosen").read_text() == "1\n"  # by the configuration
    assert list_devices(server(NONE), {}) == []


@pytest.mark.parametrize(
    ("backend", "own"),
    [(Backend.VULKAN, "Vulkan"), (Backend.CUDA, "CUDA"), (Backend.HIP, "ROCm")],
)
def test_an_engine_without_a_device_of_its_backend_is_refused_with_what_to_install(
    server, backend, own
):
    require_device(backend, server(ONE.format(own)), {})
    for listed in (NONE, ONE.format("MTL")):  # of another backend
        with pytest.raises(EngineError, match=f"no device for backend {backend}: .*install"):
            require_device(backend, server(listed), {})


def test_a_backend_without_a_driver_needs_no_device_and_who_cannot_list_them_is_believed(
    server, tmp_path
):
    require_device(Backend.METAL, server(NONE), {})
    assert list_devices(server("error: invalid argument", code=1), {}) is None
    require_device(Backend.VULKAN, tmp_path / "llama-server", {})
    assert list_devices(tmp_path / "absent", {}) is None


GB = 10**9


@pytest.mark.parametrize(
    ("backend", "gpu_memory", "usable"),
    [
        (Backend.CPU, None, 90 * GB),
        (Backend.CUDA, 40 * GB, 38 * GB),
        (Backend.CUDA, None, 95 * GB),  # the memory of the GPU is unknown
        (Backend.CPU, 40 * GB, 90 * GB),  # the GPU is not used
    ],
)
def test_models_can_use_a_share_of_the_memory_of_their_backend(backend, gpu_memory, usable):
    assert usable_memory(100 * GB, gpu_memory, backend) == usable


L4 = {"Name": "NVIDIA L4", "MemoryInfo": SimpleNamespace(total=23034 * 2**20)}
SHARING = {"Name": "NVIDIA GB10"}


@pytest.fixture
def plant(monkeypatch):
    """Let a driver answer for GPUs: each has answers by the end of the question's name."""

    def plant(*gpus):
        def answer(ending, gpu):
            if ending not in gpu:
                raise pynvml.NVMLError_NotSupported
            return gpu[ending]

        for ending in ("Name", "MemoryInfo", "CurrentClocksEventReasons"):
            monkeypatch.setattr(pynvml, f"nvmlDeviceGet{ending}", partial(answer, ending))
        monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(gpus))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", gpus.__getitem__)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lambda uuid: gpu(0x40))

    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    return plant


def gpu(reasons):
    return {"CurrentClocksEventReasons": reasons}


@pytest.mark.parametrize(
    ("gpus", "throttled"),
    [
        ([gpu(0x01)], False),  # idle
        ([gpu(0x0E)], False),  # a user, a power cap, another power state
        ([gpu(0x20)], True),  # thermal slowdown by software
        ([gpu(0x84)], True),  # power brake
        ([gpu(0), gpu(0x40)], True),
        ([{}], None),
        ([], None),
    ],
)
def test_any_throttling_is_read(plant, gpus, throttled):
    plant(*gpus)
    assert machine.is_throttled("") == throttled


def test_gpus_have_names_and_memory_and_are_chosen_by_number_or_uuid(plant):
    plant(L4, SHARING)
    assert machine.nvidia_gpus() == [("NVIDIA L4", 23034 * 2**20), ("NVIDIA GB10", None)]
    plant(gpu(0), gpu(0x40), gpu(0))
    watch = Watch(None, Backend.CUDA, {"CUDA_VISIBLE_DEVICES": "0, 2"})
    assert read_condition(watch) == {"gpu_throttled": False}
    assert machine.is_throttled("0,GPU-5e1f")


def test_without_a_driver_there_is_no_gpu(monkeypatch):
    def absent():
        raise pynvml.NVMLError_LibraryNotFound

    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    assert machine.nvidia_gpus() == []
    assert machine.is_throttled("") is None
