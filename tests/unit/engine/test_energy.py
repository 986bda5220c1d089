"""Counters of energy: recorded trees of files, and stand-ins of NVML and of a Mac's library."""

import shutil
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from specmoe.config.backend import Backend
from specmoe.engine import energy
from specmoe.engine.energy import Counter, Meter, find_meter, increase, measure_idle

RANGE_UJ = 262143328850  # of a recorded tree; 262 kJ
TREE = {
    "intel-rapl:0": ("package-0", 1_000_000_000),
    "intel-rapl:0:0": ("core", 7_000_000),
    "intel-rapl:0:1": ("dram", 9_000_000),
    "intel-rapl:1": ("package-1", 2_000_000_000),
    "intel-rapl:2": ("psys", 5_000_000),
    "intel-rapl-mmio:0": ("package-0", 1_000_000_000),
}


@pytest.fixture
def powercap(tmp_path):
    """A recorded tree of counters."""
    for zone, (name, energy_uj) in TREE.items():
        (tmp_path / zone).mkdir()
        (tmp_path / zone / "name").write_text(f"{name}\n")
        (tmp_path / zone / "energy_uj").write_text(f"{energy_uj}\n")
        (tmp_path / zone / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    return tmp_path


def count_to(powercap, zone, energy_uj):
    (powercap / zone / "energy_uj").write_text(f"{energy_uj}\n")


def meter_of(powercap):
    found = find_meter(Backend.CPU, powercap=powercap)
    assert found.meter is not None, found.words
    return found.meter


def used(meter, before, seconds=10.0):
    """Return the joules since a reading, as if so many seconds had gone by."""
    return meter.used_j(before, meter.read()._replace(clock_s=before.clock_s + seconds))


def test_packages_count_and_their_parts_and_copies_do_not(powercap):
    meter = meter_of(powercap)
    assert (meter.source, [one.name for one in meter.counters]) == (
        "RAPL",
        ["intel-rapl:0", "intel-rapl:1"],
    )
    before = meter.read()
    assert before.joules == {"intel-rapl:0": 1000.0, "intel-rapl:1": 2000.0}
    count_to(powercap, "intel-rapl:0", 1_500_000_000)
    count_to(powercap, "intel-rapl:0:0", 99_000_000_000)
    count_to(powercap, "intel-rapl:1", 2_250_000_000)
    assert used(meter, before) == pytest.approx(750.0)


@pytest.mark.parametrize(
    ("before", "after", "range_j", "elapsed_s", "used_j"),
    [
        (1000.0, 1500.0, 262_000.0, 10.0, 500.0),
        (64_000.0, 1000.0, 65_000.0, 100.0, 2000.0),  # it started again from zero
        # 65 kJ go round in 109 s at 600 W, so it may have gone round twice.
        (0.0, 1000.0, 65_000.0, 100.0, 1000.0),
        (0.0, 1000.0, 65_000.0, 111.0, None),
        # Of an unknown range it may not go back.
        (1000.0, 1500.0, None, 10.0, 500.0),
        (1500.0, 1000.0, None, 10.0, None),
        (1000.0, None, 262_000.0, 10.0, None),
    ],
)
def test_what_a_counter_rose_by_is_known_or_unknown(before, after, range_j, elapsed_s, used_j):
    assert increase(before, after, range_j, elapsed_s) == used_j


def test_a_range_may_be_unknown(powercap):
    (powercap / "intel-rapl:0/max_energy_range_uj").unlink()
    assert [one.range_j for one in meter_of(powercap).counters] == [None, RANGE_UJ / 1e6]


def test_a_counter_that_disappears_is_unknown_and_not_zero(powercap):
    meter = meter_of(powercap)
    before = meter.read()
    shutil.rmtree(powercap / "intel-rapl:1")
    assert meter.read().joules["intel-rapl:1"] is None
    assert used(meter, before) is None


def test_a_counter_that_only_root_may_read_is_named_with_the_way_out(powercap, monkeypatch):
    read = Path.read_text

    def refuse(path, *given, **more):
        if path.name == "energy_uj":
            raise PermissionError(path)
        return read(path, *given, **more)

    monkeypatch.setattr(Path, "read_text", refuse)
    found = find_meter(Backend.CPU, powercap=powercap)
    assert found == (
        None,
        f"not measured: you may not read {powercap}/intel-rapl:0/energy_uj;"
        f" `sudo chmod a+r {powercap}/intel-rapl:*/energy_uj` lets you until the next boot, and a"
        " rule for udev for good (config/README.md)",
    )


@pytest.mark.parametrize(
    ("backend", "damage", "words"),
    [
        (Backend.CPU, "intel-rapl:1/energy_uj", "{}/intel-rapl:1/energy_uj has no number"),
        (Backend.CPU, "", "this machine has no {}/intel-rapl:* of a processor"),
        # The processor's energy is not taken for that of a GPU.
        (Backend.VULKAN, None, "no counter of a GPU by backend vulkan is known"),
        (Backend.HIP, None, "no counter of a GPU by backend hip is known"),
    ],
)
def test_what_cannot_be_read_is_named(powercap, backend, damage, words):
    if damage:
        (powercap / damage).write_text("what?\n")
    elif damage is not None:
        shutil.rmtree(powercap)
    assert find_meter(backend, powercap=powercap) == (
        None,
        f"not measured: {words.format(powercap)}",
    )


def test_idle_power_is_what_the_counters_rise_by_in_a_second(monkeypatch):
    clock = iter([100.0, 102.0])
    counted = iter([50.0, 75.0])
    slept = []
    monkeypatch.setattr(energy.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(energy.time, "sleep", slept.append)
    meter = Meter("planted", (Counter("one", lambda: next(counted)),))
    assert measure_idle(meter).idle_w == pytest.approx(12.5)
    assert slept == [energy.SETTLE_S, energy.IDLE_S]


NVML_SOURCE = """
#include <string.h>
typedef void *device;
static int gpus[3] = {10, 11, 12};
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *found) {
    if (index > 2) return 2;
    *found = &gpus[index];
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *id, device *found) {
    if (strcmp(id, "GPU-abc")) return 6;
    *found = &gpus[1];
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(device gpu, unsigned long long *millijoules) {
    if (gpu == &gpus[2]) return 3;
    *millijoules = 5000000000000ULL + 1000ULL * *(int *)gpu;
    return 0;
}
"""


@pytest.fixture(scope="module")
def nvml(tmp_path_factory):
    """A library with NVML's functions: GPUs 0 and 1 count their energy, GPU 2 does not."""
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(NVML_SOURCE)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", folder / "nvml.c", "-o", library], check=True)
    return str(library)


@pytest.mark.parametrize(
    ("gpus", "counted"),
    [
        ("", {"0": 5_000_000_010.0, "1": 5_000_000_011.0}),
        ("1", {"1": 5_000_000_011.0}),
        ("GPU-abc", {"GPU-abc": 5_000_000_011.0}),
    ],
)
def test_the_engines_gpus_are_counted_in_joules(nvml, tmp_path, gpus, counted):
    found = find_meter(Backend.CUDA, gpus, tmp_path, nvml)
    assert found.meter.source == "NVML"
    assert found.meter.read().joules == counted
    assert "without the processors: this machine has no" in found.words


def test_processors_count_beside_gpus_where_both_can_be_read(nvml, powercap):
    found = find_meter(Backend.CUDA, "0", powercap, nvml)
    assert found.words == "NVML and RAPL (0, intel-rapl:0, intel-rapl:1)"


def test_gpus_that_do_not_count_are_not_replaced_by_processors(nvml, powercap):
    refused = find_meter(Backend.CUDA, "0,2", powercap, nvml)
    assert refused.meter is None
    assert "refuses nvmlDeviceGetTotalEnergyConsumption (code 3)" in refused.words
    absent = find_meter(Backend.CUDA, "", powercap, "libnvidia-ml-of-no-driver.so.1")
    assert absent.meter is None
    assert "has no libnvidia-ml-of-no-driver.so.1" in absent.words


class AppleEnergyMonitor:
    """What zeus-apple-silicon's documentation says of its class."""

    def get_cumulative_energy(self):
        return SimpleNamespace(cpu_total_mj=2000, gpu_mj=3000, dram_mj=None)


def test_a_macs_chip_counts_processor_and_gpu(monkeypatch):
    library = ModuleType("zeus_apple_silicon")
    library.AppleEnergyMonitor = AppleEnergyMonitor
    monkeypatch.setattr(energy.platform, "system", lambda: "Darwin")
    monkeypatch.setitem(energy.importlib.sys.modules, "zeus_apple_silicon", library)
    found = find_meter(Backend.METAL)
    assert found.meter.read().joules == {"cpu_total_mj": 2.0, "gpu_mj": 3.0}


def test_a_mac_without_the_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(energy.platform, "system", lambda: "Darwin")
    monkeypatch.setitem(energy.importlib.sys.modules, "zeus_apple_silicon", None)
    assert "`pip install zeus-apple-silicon`" in find_meter(Backend.METAL).words
