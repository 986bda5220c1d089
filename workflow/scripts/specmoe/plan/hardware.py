"""The full description of a campaign's machine, for `hosts/r<repeat>.json` and `host.json`.

A fact that the system does not report is null. macOS was tested on recorded output only, and no GPU
was there.
"""

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml

from specmoe.config.backend import COPYING, Backend
from specmoe.engine.devices import Device
from specmoe.engine.machine_id import host_id, output_of, physical_cores, processor_name

Facts = dict[str, str | int | float | None]

PROBED = "probe: sustained reads of the system's memory by all physical cores"

GB = 10**9  # vendors give bandwidth in powers of ten
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
    gpus = _gpus(backend, devices)
    battery = psutil.sensors_battery()
    mains = battery.power_plugged if battery else None
    hardware: Facts = {
        "id": host_id(),
        "chip": processor_name(),
        "architecture": platform.machine(),
        "physical_cores": physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "gpu": " + ".join(dict.fromkeys(name for name, _ in gpus)) or None,
        "gpu_count": len(gpus) or None,
        "gpu_memory_bytes": sum(size or 0 for _, size in gpus) or None,
        "system": _system(),
        "power_source": None if mains is None else "mains" if mains else "battery",
        "given": ", ".join(sorted(given)),
        "devices": ", ".join(f"{one.name}: {one.description}" for one in devices) or None,
    }
    hardware |= stated(given)
    bandwidth, source = _bandwidth(hardware, backend, given, chips, probe)
    return hardware | {
        "memory_bandwidth_bytes_per_second": bandwidth,
        "memory_bandwidth_source": source,
    }


def stated(given: Mapping[str, str | float]) -> Facts:
    """Return what the user states, under the names of the description."""
    names = {name: str(given[name]) for name in ("chip", "gpu") if name in given}
    sizes = {
        f"{name}_bytes": round(float(given[f"{name}_gb"]) * GIB)
        for name in ("memory", "gpu_memory")
        if f"{name}_gb" in given
    }
    return {**names, **sizes}


def _gpus(backend: Backend, devices: Sequence[Device]) -> list[tuple[str, int | None]]:
    """Return the name of each GPU, and the bytes of its own memory.

    Of a GPU that shares the system's memory, an engine's device has the part that its driver lets
    it have. A software driver has none.
    """
    if devices and backend in (Backend.HIP, Backend.VULKAN):
        return [(one.description, None if one.is_software else one.memory_bytes) for one in devices]
    if platform.system() != "Darwin":
        from specmoe.engine import nvidia

        return nvidia.gpus()
    chip = processor_name()
    cores = re.search(
        r'"gpu-core-count" = (\d+)', output_of("ioreg", "-rd1", "-c", "AGXAccelerator")
    )
    name = f"{chip}, {cores[1]}-core GPU" if cores else chip
    return [(name, None)] if chip.startswith("Apple") else []


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


def _system() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except OSError:
        return kernel


def known_bandwidth(chips: Path, names: Sequence[str]) -> tuple[float, str] | None:
    """Return the bandwidth of the first name in the table, and its source.

    Names match as a whole: `Apple M2 Ultra` does not match `Apple M2`.
    """
    entries = _entries(chips)
    for name in filter(entries.__contains__, names):
        entry = entries[name]
        return entry["gb_per_second"] * GB, f"table: {name}, {entry['source']}"
    return None


def bandwidth_by_chip(chips: Path) -> dict[str, float]:
    """Return the bandwidth of every name in the table, in GB/s."""
    return {name: float(entry["gb_per_second"]) for name, entry in _entries(chips).items()}


def _entries(chips: Path) -> dict[str, dict[str, Any]]:
    table = yaml.load(chips.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {name: entry for entry in table for name in entry["names"]}
