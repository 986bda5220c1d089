"""The full description of a campaign's machine, for `hosts/r<repeat>.json` and `host.json`.

A fact that the system does not report is null. The parsers for macOS and nvidia-smi were tested on
recorded output only, never on a Mac or with a GPU.
"""

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import psutil

from specmoe.config.backend import COPYING, Backend
from specmoe.engine.devices import Device
from specmoe.engine.machine_id import (
    host_id,
    load_average,
    output_of,
    physical_cores,
    processor_name,
    text_of,
)
from specmoe.plan.chips import GB, known_bandwidth

Facts = dict[str, str | int | float | None]

PROBED = "probe: sustained reads of the system's memory by all physical cores"

# Cores of one kind differ by a few percent in the clock they reach; cores of two kinds by more.
KINDS_APART = 1.25

GIB = 2**30  # vendors give memory in powers of two despite its label


def describe(
    backend: Backend,
    given: Mapping[str, str | float],
    chips: Path,
    probe: Callable[[], float],
    devices: Sequence[Device] = (),
) -> Facts:
    """Return what a plan and a paper say about the machine.

    `given` holds what the user states, which overrides what is found: chip, memory_gb,
    memory_bandwidth_gb_s, gpu, gpu_memory_gb. `chips` is the table of known bandwidths. `probe`
    measures the bandwidth of the system's memory, if neither gives it. `devices` are those that the
    engine lists; backends without a tool of their own take the GPUs from it. The memory and
    bandwidth of GPUs are null if they are unknown or if the GPUs share the system's memory.
    """
    if platform.system() == "Darwin":
        levels = (f"hw.perflevel{level}.physicalcpu" for level in (0, 1))
        performance, efficiency = mac_core_kinds(output_of("sysctl", *levels))
        gpu = apple_gpu(processor_name(), output_of("ioreg", "-rd1", "-c", "AGXAccelerator"))
        power = mac_power_source(output_of("pmset", "-g", "batt"))
        heat = mac_thermal_state(output_of("pmset", "-g", "therm"))
    else:
        performance, efficiency = linux_core_kinds(Path("/sys"))
        asked = ("--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
        gpu = nvidia_gpu(output_of("nvidia-smi", *asked))
        power, heat = _battery_power_source(), linux_thermal_state(Path("/sys"))
    if devices and backend in (Backend.HIP, Backend.VULKAN):
        gpu = listed_gpu(devices)
    hardware: Facts = {
        "id": host_id(),
        "chip": processor_name(),
        "architecture": platform.machine(),
        "performance_cores": performance,
        "efficiency_cores": efficiency,
        "physical_cores": physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        **gpu,
        "system": _system(),
    }
    hardware |= _stated(given)
    bandwidth, source = _bandwidth(hardware, backend, given, chips, probe)
    return hardware | {
        "memory_bandwidth_bytes_per_second": bandwidth,
        "memory_bandwidth_source": source,
        "power_source": power,
        "thermal_state": heat,
        "load_average": load_average(),
        "given": ", ".join(sorted(given)),
        "devices": ", ".join(f"{one.name}: {one.description}" for one in devices) or None,
    }


def mac_core_kinds(sysctl: str) -> tuple[int | None, int | None]:
    """Return how many cores are of the fastest kind and how many of another, from `sysctl`."""
    found = dict(re.findall(r"^hw\.perflevel(\d)\.physicalcpu: (\d+)$", sysctl, re.MULTILINE))
    return (int(found["0"]), int(found["1"])) if len(found) > 1 else (None, None)


def linux_core_kinds(sysfs: Path) -> tuple[int | None, int | None]:
    """Return how many performance and efficiency cores there are; nulls if all are of one kind."""
    fast = cpu_numbers(text_of(sysfs / "devices/cpu_core/cpus"))
    slow = cpu_numbers(text_of(sysfs / "devices/cpu_atom/cpus"))
    cpus = sysfs / "devices/system/cpu"
    if not slow:
        fast, slow = _split_by_capacity(cpus)
    if not (fast and slow):
        return None, None
    return _count_cores(cpus, fast), _count_cores(cpus, slow)


def cpu_numbers(text: str) -> set[int]:
    """Return the CPU numbers in a list that the kernel prints, such as `0-3,8`."""
    spans = [[int(end) for end in span.split("-")] for span in text.split(",") if span]
    return {number for span in spans for number in range(span[0], span[-1] + 1)}


def nvidia_gpu(nvidia_smi: str) -> Facts:
    """Return the GPUs from nvidia-smi's lines of name and MiB, with their total memory."""
    rows = [line.rpartition(", ") for line in nvidia_smi.splitlines() if ", " in line]
    # For a GPU that shares the system's memory nvidia-smi prints `[N/A]`.
    sizes = [int(size) for _, _, size in rows if size.isdecimal()]
    return _gpu([name for name, _, _ in rows], sum(sizes) * 2**20 if sizes else None)


def listed_gpu(devices: Sequence[Device]) -> Facts:
    """Return the GPUs that the engine lists, with their total memory; null for a software driver.

    A GPU that shares the system's memory has the part that its driver lets it have.
    """
    own = not any(device.is_software for device in devices)
    memory = sum(device.memory_bytes for device in devices) if own else None
    return _gpu([device.description for device in devices], memory)


def apple_gpu(chip: str, ioreg: str) -> Facts:
    """Return the GPU of an Apple chip, e.g. `Apple M3 Max, 40-core GPU`; nulls for other Macs."""
    cores = re.search(r'"gpu-core-count" = (\d+)', ioreg)
    name = f"{chip}, {cores[1]}-core GPU" if cores else chip
    return _gpu([name] if chip.startswith("Apple") else [], None)


def _gpu(names: Sequence[str], memory_bytes: int | None) -> Facts:
    return {
        "gpu": " + ".join(dict.fromkeys(names)) or None,
        "gpu_count": len(names) or None,
        "gpu_memory_bytes": memory_bytes,
    }


def mac_power_source(pmset: str) -> str | None:
    """Return `mains` or `battery`, from what `pmset -g batt` prints."""
    found = re.search(r"Now drawing from '(AC|Battery) Power'", pmset)
    return {"AC": "mains", "Battery": "battery"}[found[1]] if found else None


def mac_thermal_state(pmset: str) -> str | None:
    """Return the clock limit that `pmset -g therm` prints, or else its first remark."""
    limit = re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", pmset)
    if limit:
        return f"CPU speed limit {limit[1]} %"
    return pmset.partition("\n")[0].removeprefix("Note: ") or None


def linux_thermal_state(sysfs: Path) -> str | None:
    """Return the highest temperature, and the throttle count of the most throttled core."""
    degrees = _numbers(sysfs, "class/thermal/thermal_zone*/temp")
    throttled = _numbers(sysfs, "devices/system/cpu/cpu*/thermal_throttle/*_throttle_count")
    parts = [f"{max(degrees) / 1000:.0f} °C"] if degrees else []
    if throttled:
        parts.append(f"throttled {max(throttled)} times since the boot")
    return ", ".join(parts) or None


def _bandwidth(
    hardware: Facts,
    backend: Backend,
    given: Mapping[str, str | float],
    chips: Path,
    probe: Callable[[], float],
) -> tuple[float | None, str | None]:
    """Return the bandwidth of the memory that the backend reads weights from, and its source."""
    if "memory_bandwidth_gb_s" in given:
        return float(given["memory_bandwidth_gb_s"]) * GB, "config"
    shared = hardware["gpu"] is not None and hardware["gpu_memory_bytes"] is None
    apart = backend in COPYING and not shared
    names = [str(hardware["gpu"])] if apart or shared else []
    names += [] if apart else [str(hardware["chip"])]
    if known := known_bandwidth(chips, names):
        return known
    # The probe runs on CPU cores, which cannot read a GPU's own memory.
    return (None, None) if apart else (probe(), PROBED)


def _stated(given: Mapping[str, str | float]) -> Facts:
    """Return what the user states, under the names of the description."""
    names = {name: str(given[name]) for name in ("chip", "gpu") if name in given}
    sizes = {
        f"{name}_bytes": round(float(given[f"{name}_gb"]) * GIB)
        for name in ("memory", "gpu_memory")
        if f"{name}_gb" in given
    }
    return {**names, **sizes}


def _system() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except OSError:
        return kernel


def _split_by_capacity(cpus: Path) -> tuple[set[int], set[int]]:
    """Return the CPUs above and below the widest gap between the kernel's CPU capacities."""
    capacities = {
        int(file.parent.name.removeprefix("cpu")): int(text_of(file) or 0)
        for file in cpus.glob("cpu[0-9]*/cpu_capacity")
    }
    steps = [(high / low, high) for low, high in pairwise(sorted(set(capacities.values()))) if low]
    apart, border = max(steps, default=(0, 0))
    if apart < KINDS_APART:
        return set(), set()
    fast = {cpu for cpu, capacity in capacities.items() if capacity >= border}
    return fast, set(capacities) - fast


def _count_cores(cpus: Path, numbers: set[int]) -> int:
    """Return how many cores these CPUs belong to: threads of one core list the same siblings."""
    return len(
        {text_of(cpus / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in numbers}
    )


def _battery_power_source() -> str | None:
    battery = psutil.sensors_battery()
    if battery is None or battery.power_plugged is None:
        return None
    return "mains" if battery.power_plugged else "battery"


def _numbers(folder: Path, pattern: str) -> list[int]:
    texts = [text_of(file) for file in folder.glob(pattern)]
    return [int(text) for text in texts if text.isdecimal()]
