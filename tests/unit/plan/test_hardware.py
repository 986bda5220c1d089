"""The description of the machine, from what systems and tools report."""

import json
import platform
import subprocess
from unittest.mock import Mock

import psutil
import pytest
import yaml

from specmoe.config.backend import Backend
from specmoe.engine.devices import Device
from specmoe.engine.measuring_lock import FOLDER_OF_TESTS, alone
from specmoe.plan import hardware
from specmoe.plan.chips import known_bandwidth

from ...conftest import verb

MAC_OUTPUT = {
    "sysctl": "hw.perflevel0.physicalcpu: 12\nhw.perflevel1.physicalcpu: 4",
    "ioreg": "+-o AGXAcceleratorG15X  <class AGXAcceleratorG15X, id 0x1000005ab>\n    {\n"
    '      "gpu-core-count" = 40\n      "model" = "Apple M3 Max"\n    }',
    "pmset": "Now drawing from 'AC Power'\n -InternalBattery-0 (id=22806627)\t78%; charging;",
}

NOT_HOT = """\
Note: No thermal warning level has been recorded
Note: No performance warning level has been recorded
"""

THROTTLED = """\
2025-08-20 05:08:37 -0700 CPU Power notify
\tCPU_Scheduler_Limit \t= 100
\tCPU_Available_CPUs \t= 12
\tCPU_Speed_Limit \t= 85
"""


@pytest.fixture(scope="session")
def chips(root):
    return root / "resources/hardware/memory_bandwidth.yaml"


@pytest.fixture(scope="session")
def keys(root):
    """The keys of the descriptions that ship, and those that came later."""
    shipped = json.loads((root / "resources/campaigns/methods/host.json").read_text())
    return [*shipped, *(key for key in ("devices",) if key not in shipped)]


@pytest.fixture
def sysfs(tmp_path):
    """Write files of /sys, from their paths in it."""

    def write(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(f"{text}\n")
        return tmp_path

    return write


def capacities(*values):
    return {f"devices/system/cpu/cpu{cpu}/cpu_capacity": value for cpu, value in enumerate(values)}


def no_probe():
    raise AssertionError("nothing was to be measured")


def described(chips, backend=Backend.CPU, given=None, probe=no_probe):
    return hardware.describe(backend, given or {}, chips, probe)


def bandwidth_of(facts):
    return facts["memory_bandwidth_bytes_per_second"], facts["memory_bandwidth_source"]


@pytest.fixture
def mac(monkeypatch):
    """Make this machine look like a MacBook Pro."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("15.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(hardware, "processor_name", lambda: "Apple M3 Max")
    monkeypatch.setattr(hardware, "output_of", lambda tool, *_: MAC_OUTPUT[tool])


def test_this_machine_is_described_in_plain_values(chips, keys):
    facts = described(chips, probe=lambda: 5e10)
    assert list(facts) == keys
    assert all(isinstance(value, str | int | float | None) for value in facts.values())
    assert json.loads(json.dumps(facts)) == facts
    assert facts["memory_bytes"] == psutil.virtual_memory().total
    assert 1 <= facts["physical_cores"] <= facts["logical_cores"]
    assert facts["chip"]
    assert facts["architecture"] == platform.machine()
    assert platform.release() in facts["system"] or facts["system"].startswith("macOS")
    assert facts["given"] == ""


def test_what_the_user_states_overrides_what_is_found_and_is_listed(chips):
    given = {
        "chip": "Apple M2 Ultra",
        "memory_gb": 192,
        "memory_bandwidth_gb_s": "800",
        "gpu": "Apple M2 Ultra, 76-core GPU",
        "gpu_memory_gb": 1.5,
    }
    facts = described(chips, given=given)
    assert facts["chip"] == "Apple M2 Ultra"
    assert facts["memory_bytes"] == 192 * 2**30
    assert facts["gpu"] == "Apple M2 Ultra, 76-core GPU"
    assert facts["gpu_memory_bytes"] == 3 * 2**29
    assert bandwidth_of(facts) == (800e9, "config")
    assert facts["given"] == "chip, gpu, gpu_memory_gb, memory_bandwidth_gb_s, memory_gb"


def test_a_mac_is_described_from_its_tools(chips, mac):
    facts = described(chips, Backend.METAL)
    assert (facts["performance_cores"], facts["efficiency_cores"]) == (12, 4)
    assert facts["system"] == "macOS 15.5"
    assert facts["gpu"] == "Apple M3 Max, 40-core GPU"
    assert (facts["gpu_count"], facts["gpu_memory_bytes"]) == (1, None)
    assert facts["power_source"] == "mains"
    assert facts["memory_bandwidth_bytes_per_second"] == 400e9
    assert described(chips, Backend.CPU)["memory_bandwidth_bytes_per_second"] == 400e9


RTX, SHARED = "NVIDIA GeForce RTX 4090, 24564\n", "NVIDIA GB10, [N/A]\n"


@pytest.mark.parametrize(
    ("nvidia_smi", "backend", "chip", "bandwidth"),
    [
        ("", Backend.CPU, "Apple M2 Ultra", 800e9),
        ("", Backend.CPU, "Apple M2 Extreme", 5e10),  # unknown, so it is probed
        (RTX, Backend.CUDA, "EPYC", 1008e9),
        (RTX, Backend.CPU, "EPYC", 5e10),
        # An unknown GPU does not have the bandwidth of the CPU.
        ("NVIDIA GeForce RTX 4090 Laptop GPU, 16376\n", Backend.CUDA, "Apple M2 Ultra", None),
        ("", Backend.CUDA, "Apple M2 Ultra", None),
        # A GPU that shares the memory gives the bandwidth of the CPU too.
        (SHARED, Backend.CUDA, "EPYC", 273e9),
        (SHARED, Backend.CPU, "EPYC", 273e9),
        # A board is found by its model where its GPU has no specific name.
        ("Orin (nvgpu), [N/A]\n", Backend.CUDA, "NVIDIA Jetson AGX Orin Developer Kit", 204.8e9),
    ],
)
def test_the_bandwidth_is_that_of_the_memory_that_the_backend_reads(
    monkeypatch, chips, nvidia_smi, backend, chip, bandwidth
):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(hardware, "output_of", lambda tool, *_: nvidia_smi)
    facts = described(chips, backend, {"chip": chip}, lambda: 5e10)
    assert (facts["gpu"] or "") == nvidia_smi.rpartition(", ")[0]
    found, source = bandwidth_of(facts)
    assert found == bandwidth
    assert str(source).partition(":")[0] == {5e10: "probe", None: "None"}.get(bandwidth, "table")


def test_several_gpus_are_counted_and_their_memory_added():
    alone = hardware.nvidia_gpu("NVIDIA L4, 23034\n")
    assert alone == {"gpu": "NVIDIA L4", "gpu_count": 1, "gpu_memory_bytes": 23034 * 2**20}
    alike = hardware.nvidia_gpu("NVIDIA L4, 23034\nNVIDIA L4, 23034\n")
    assert alike == {"gpu": "NVIDIA L4", "gpu_count": 2, "gpu_memory_bytes": 46068 * 2**20}
    assert hardware.nvidia_gpu("NVIDIA L4, 23034\nTesla T4, 15360")["gpu"] == "NVIDIA L4 + Tesla T4"


RADEON = Device("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 24 * 2**30)
LLVMPIPE = Device("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)", 20 * 2**30)


def test_backends_without_a_tool_of_their_own_take_the_gpu_from_the_engines_list(
    monkeypatch, chips
):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(hardware, "output_of", lambda tool, *_: RTX if tool == "nvidia-smi" else "")
    facts = hardware.describe(Backend.VULKAN, {}, chips, no_probe, [RADEON, RADEON])
    assert facts["gpu"] == RADEON.description
    assert (facts["gpu_count"], facts["gpu_memory_bytes"]) == (2, 48 * 2**30)
    assert facts["devices"] == f"Vulkan0: {RADEON.description}, Vulkan0: {RADEON.description}"
    assert facts["memory_bandwidth_bytes_per_second"] is None
    # CUDA's is named as the table of chips names it.
    cuda = hardware.describe(Backend.CUDA, {}, chips, no_probe, [Device("CUDA0", "RTX", 1)])
    assert cuda["gpu"] == "NVIDIA GeForce RTX 4090"


def test_a_software_driver_computes_in_the_memory_of_the_system(chips):
    facts = hardware.describe(Backend.VULKAN, {}, chips, lambda: 5e10, [LLVMPIPE])
    assert (facts["gpu"], facts["gpu_memory_bytes"]) == (LLVMPIPE.description, None)
    assert bandwidth_of(facts) == (5e10, hardware.PROBED)


@pytest.mark.parametrize("text", ["", "No devices were found\n"])
def test_no_gpu_is_null(text):
    none = {"gpu": None, "gpu_count": None, "gpu_memory_bytes": None}
    assert hardware.nvidia_gpu(text) == none
    assert hardware.apple_gpu("Intel(R) Core(TM) i9-9880H CPU @ 2.30GHz", "") == none
    assert hardware.apple_gpu("Apple M1", "")["gpu"] == "Apple M1"  # without a count of cores


def test_every_known_chip_is_named_once_and_has_a_figure_and_a_source(chips):
    table = yaml.safe_load(chips.read_text())
    names = [name for entry in table for name in entry["names"]]
    assert len(names) == len(set(names))
    for entry in table:
        assert set(entry) == {"names", "gb_per_second", "source"}
        assert 10 < entry["gb_per_second"] < 10_000
        for name in entry["names"]:
            found = entry["gb_per_second"] * 10**9, f"table: {name}, {entry['source']}"
            assert known_bandwidth(chips, [name]) == found


def test_intel_reports_kinds_of_cores_by_thread(sysfs):
    files = {"devices/cpu_core/cpus": "0-3", "devices/cpu_atom/cpus": "4-5,7"}
    for cpu in range(4):
        pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"
        files[f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"] = pair
    assert hardware.linux_core_kinds(sysfs(files)) == (2, 3)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([], (None, None)),  # a system that reports neither
        ([1024, 1024], (None, None)),
        ([1024, 927, 927], (None, None)),  # one kind, clocked differently
        ([250, 250, 250, 250, 870, 870, 870, 1024], (4, 4)),
        ([718, 718, 997, 1024], (2, 2)),
    ],
)
def test_arm_reports_kinds_of_cores_by_capacity(sysfs, values, kinds):
    assert hardware.linux_core_kinds(sysfs(capacities(*values))) == kinds


@pytest.mark.parametrize(
    ("pmset", "source", "state"),
    [
        (MAC_OUTPUT["pmset"] + NOT_HOT + THROTTLED, "mains", "CPU speed limit 85 %"),
        ("Now drawing from 'Battery Power'\n -InternalBattery-0\t19%;", "battery", None),
        (NOT_HOT, None, "No thermal warning level has been recorded"),
        ("", None, None),
    ],
)
def test_a_mac_reports_its_power_source_and_whether_heat_slows_it(pmset, source, state):
    assert hardware.mac_power_source(pmset) == source
    if source != "battery":  # that is what `pmset -g batt` prints
        assert hardware.mac_thermal_state(pmset) == state


@pytest.mark.parametrize(("plugged", "source"), [(True, "mains"), (False, "battery"), (None, None)])
def test_linux_reports_its_power_source_and_without_a_release_file_its_kernel(
    monkeypatch, chips, plugged, source
):
    battery = type("Battery", (), {"power_plugged": plugged})
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "release", lambda: "6.1.0")
    monkeypatch.setattr(platform, "freedesktop_os_release", Mock(side_effect=OSError))
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery)
    facts = described(chips, probe=lambda: 1e9)
    assert (facts["power_source"], facts["system"]) == (source, "Linux 6.1.0")


def test_linux_reports_its_highest_temperature_and_its_throttling(sysfs, tmp_path):
    assert hardware.linux_thermal_state(tmp_path) is None
    sysfs({"class/thermal/thermal_zone0/temp": 27800, "class/thermal/thermal_zone1/temp": 61400})
    assert hardware.linux_thermal_state(tmp_path) == "61 °C"
    throttle = "devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"
    sysfs({throttle.format(0): 3, throttle.format(1): 12})
    assert hardware.linux_thermal_state(tmp_path) == "61 °C, throttled 12 times since the boot"


@pytest.fixture
def command(chips, tmp_path):
    """The command that describes the machine into `host.json`, but for what the user states."""
    words = ["--backend", "cpu", "--chips", chips, "--out", tmp_path / "host.json"]
    return verb("describe_host", *words, "--given")


def test_the_verb_waits_for_a_measurement_before_it_probes(command, keys, tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_OF_TESTS, str(tmp_path))
    with alone():
        waiting = subprocess.Popen(
            [*command, '{"chip": "unknown"}'],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "waiting for another measurement" in waiting.stdout.readline()
        assert not (tmp_path / "host.json").exists()
    assert waiting.wait(120) == 0
    facts = json.loads((tmp_path / "host.json").read_text())
    assert list(facts) == keys
    assert facts["memory_bandwidth_source"] == hardware.PROBED
