"""Counters of energy: recorded trees of files, and stand-ins of NVML and of a Mac's library."""

import os
import shutil
import subprocess
import tempfile
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
NOBODY = 65534


def plant(folder, tree=TREE, range_uj=RANGE_UJ):
    for zone, (name, energy_uj) in tree.items():
        (folder / zone).mkdir()
        (folder / zone / "name").write_text(f"{name}\n")
        (folder / zone / "energy_uj").write_text(f"{energy_uj}\n")
        if range_uj is not None:
            (folder / zone / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return folder


@pytest.fixture
def powercap(tmp_path):
    return plant(tmp_path)


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


def test_a_counter_that_started_again_from_zero_goes_on(powercap):
    meter = meter_of(powercap)
    count_to(powercap, "intel-rapl:0", RANGE_UJ - 1_000_000)
    before = meter.read()
    count_to(powercap, "intel-rapl:0", 2_000_000)
    assert used(meter, before) == pytest.approx(3.0)


def test_without_its_range_a_counter_that_went_back_is_unknown(tmp_path):
    meter = meter_of(plant(tmp_path, range_uj=None))
    before = meter.read()
    count_to(tmp_path, "intel-rapl:0", 1_500_000_000)
    assert used(meter, before) == pytest.approx(500.0)
    count_to(tmp_path, "intel-rapl:0", 500_000_000)
    assert used(meter, before) is None


def test_a_counter_that_may_have_gone_round_twice_is_unknown():
    # 65 kJ go round in 109 s at 600 W.
    assert increase(0.0, 1000.0, 65_000.0, elapsed_s=100.0) == 1000.0
    assert increase(0.0, 1000.0, 65_000.0, elapsed_s=111.0) is None
    assert increase(64_000.0, 1000.0, 65_000.0, elapsed_s=100.0) == 2000.0


def test_a_counter_that_disappears_is_unknown_and_not_zero(powercap):
    meter = meter_of(powercap)
    before = meter.read()
    shutil.rmtree(powercap / "intel-rapl:1")
    assert meter.read().joules["intel-rapl:1"] is None
    assert used(meter, before) is None


@pytest.fixture
def as_user():
    """Run the test without root's right to read every file."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def root_only():
    """A tree that everybody can list, in which only root may read how much was used."""
    with tempfile.TemporaryDirectory() as folder:
        powercap = plant(Path(folder))
        powercap.chmod(0o755)
        mode = 0o400 if os.geteuid() == 0 else 0
        for file in powercap.glob("*/energy_uj"):
            file.chmod(mode)
        yield powercap


def test_a_counter_that_only_root_may_read_is_named_with_the_way_out(root_only, as_user):
    found = find_meter(Backend.CPU, powercap=root_only)
    assert found.meter is None
    assert found.words == (
        f"not measured: you may not read {root_only}/intel-rapl:0/energy_uj;"
        f" `sudo chmod a+r {root_only}/intel-rapl:*/energy_uj` lets you until the next boot, and a"
        " rule for udev for good (config/README.md)"
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
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(NVML_SOURCE)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", str(folder / "nvml.c"), "-o", str(library)], check=True
    )
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
