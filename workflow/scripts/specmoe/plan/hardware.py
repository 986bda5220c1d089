"""The machine of a campaign in full, as `hosts/r<repeat>.json` and `host.json` hold it.

Where a system does not tell, the answer is null. What macOS and nvidia-smi print is parsed from
recorded output; it has not run on a Mac, nor with a GPU.
"""

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import psutil
import yaml

from specmoe.config.backend import Backend
from specmoe.engine.machine_id import (
    host_id,
    load_average,
    output_of,
    physical_cores,
    processor_name,
    text_of,
)
from specmoe.errors import MeasurementError

Facts = dict[str, str | int | float | None]

PROBED = "probe: sustained reads of the system's memory by all physical cores"

# Cores of one kind differ by a few percent in the clock they reach; of two, by far more.
KINDS_APART = 1.25

# Bandwidth is sold in powers of ten, memory in powers of two whatever its label says.
GB, GIB = 10**9, 2**30


def describe(
    backend: Backend, given: Mapping[str, str | float], chips: Path, probe: Callable[[], float]
) -> Facts:
    """Return what a plan and a paper say of the machine.

    `given` holds what the user states, which goes before what is found: chip, memory_gb,
    memory_bandwidth_gb_s, gpu, gpu_memory_gb. `chips` is the table of known bandwidths; `probe`
    measures that of the system's memory, and is called only if nothing else tells it. The memory
    and bandwidth of GPUs are null if it is not known, or if they share the system's.
    """
    mac = platform.system() == "Darwin"
    performance, efficiency = _mac_core_kinds() if mac else linux_core_kinds(Path("/sys"))
    hardware: Facts = {
        "id": host_id(),
        "chip": processor_name(),
        "architecture": platform.machine(),
        "performance_cores": performance,
        "efficiency_cores": efficiency,
        "physical_cores": physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        **(_mac_gpu() if mac else _nvidia_gpu()),
        "system": _system(),
    }
    hardware |= _stated(given)
    bandwidth, source = _bandwidth(hardware, backend, given, chips, probe)
    return hardware | {
        "memory_bandwidth_bytes_per_second": bandwidth,
        "memory_bandwidth_source": source,
        "power_source": _mac_power_source() if mac else _battery_power_source(),
        "thermal_state": _mac_thermal_state() if mac else linux_thermal_state(Path("/sys")),
        "load_average": load_average(),
        "given": ", ".join(sorted(given)),
    }


def collect(descriptions: Sequence[Facts]) -> Facts:
    """Return the first of a machine's descriptions, with the highest bandwidth that was probed.

    What else the memory serves at the time of a probe lowers its result and nothing raises it (see
    `bandwidth_probe.probe`), so the highest is nearest to what bounds the runs. Raises
    MeasurementError if they describe more than one machine.
    """
    first = descriptions[0]
    machines = {str(one["id"]): str(one["chip"]) for one in descriptions}
    if len(machines) > 1:
        named = " and ".join(f"{chip}, {machine}" for machine, chip in machines.items())
        raise MeasurementError(
            f"the repeats of this campaign were described on {len(machines)} machines ({named}):"
            " give those of another machine a campaign.name of their own"
        )
    if first["memory_bandwidth_source"] != PROBED or len(descriptions) == 1:
        return first
    rates = [float(one["memory_bandwidth_bytes_per_second"] or 0) for one in descriptions]
    return first | {
        "memory_bandwidth_bytes_per_second": max(rates),
        "memory_bandwidth_source": f"{PROBED}; the highest of {len(rates)}",
    }


def known_bandwidth(chips: Path, names: list[str]) -> tuple[float, str] | None:
    """Return the bandwidth of the first name that the table knows, and where it is from.

    A name is known only as a whole: an `Apple M2 Ultra` is no `Apple M2`.
    """
    table = yaml.safe_load(chips.read_text(encoding="utf-8"))
    for name in names:
        for entry in table:
            if name in entry["names"]:
                return entry["gb_per_second"] * GB, f"table: {name}, {entry['source']}"
    return None


def mac_core_kinds(sysctl: str) -> tuple[int | None, int | None]:
    """Return the numbers of the fastest cores and of the others, from what `sysctl` prints."""
    found = dict(re.findall(r"^hw\.perflevel(\d)\.physicalcpu: (\d+)$", sysctl, re.MULTILINE))
    return (int(found["0"]), int(found["1"])) if len(found) > 1 else (None, None)


def linux_core_kinds(sysfs: Path) -> tuple[int | None, int | None]:
    """Return the numbers of performance and of efficiency cores; nulls if all are of one kind."""
    fast = cpu_numbers(text_of(sysfs / "devices/cpu_core/cpus"))
    slow = cpu_numbers(text_of(sysfs / "devices/cpu_atom/cpus"))
    cpus = sysfs / "devices/system/cpu"
    if not slow:
        fast, slow = _split_by_capacity(cpus)
    if not (fast and slow):
        return None, None
    return _count_cores(cpus, fast), _count_cores(cpus, slow)


def cpu_numbers(text: str) -> set[int]:
    """Return the numbers in a list of the kernel, such as `0-3,8`."""
    spans = [[int(end) for end in span.split("-")] for span in text.split(",") if span]
    return {number for span in spans for number in range(span[0], span[-1] + 1)}


def nvidia_gpu(nvidia_smi: str) -> Facts:
    """Return GPUs from nvidia-smi's lines of name and MiB; the memory is that of all together."""
    rows = [line.rpartition(", ") for line in nvidia_smi.splitlines() if ", " in line]
    sizes = [int(size) for _, _, size in rows if size.isdecimal()]
    return {
        "gpu": " + ".join(dict.fromkeys(name for name, _, _ in rows)) or None,
        "gpu_count": len(rows) or None,
        # Chips whose GPU shares the memory answer `[N/A]`.
        "gpu_memory_bytes": sum(sizes) * 2**20 if sizes else None,
    }


def apple_gpu(chip: str, ioreg: str) -> Facts:
    """Return the GPU of an Apple chip, e.g. `Apple M3 Max, 40-core GPU`; of other Macs none."""
    if not chip.startswith("Apple"):
        return {"gpu": None, "gpu_count": None, "gpu_memory_bytes": None}
    cores = re.search(r'"gpu-core-count" = (\d+)', ioreg)
    name = f"{chip}, {cores[1]}-core GPU" if cores else chip
    return {"gpu": name, "gpu_count": 1, "gpu_memory_bytes": None}


def mac_power_source(pmset: str) -> str | None:
    """Return `mains` or `battery`, from what `pmset -g batt` prints."""
    found = re.search(r"Now drawing from '(AC|Battery) Power'", pmset)
    return {"AC": "mains", "Battery": "battery"}[found[1]] if found else None


def mac_thermal_state(pmset: str) -> str | None:
    """Return the limit on the clock, or else the first remark, of what `pmset -g therm` prints."""
    limit = re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", pmset)
    if limit:
        return f"CPU speed limit {limit[1]} %"
    first, *_ = pmset.splitlines() or [""]
    return first.removeprefix("Note: ") or None


def linux_thermal_state(sysfs: Path) -> str | None:
    """Return the highest temperature, and how often the most throttled core was since the boot."""
    degrees = _numbers(sysfs, "class/thermal/thermal_zone*/temp")
    throttled = _numbers(sysfs, "devices/system/cpu/cpu*/thermal_throttle/*_throttle_count")
    parts = []
    if degrees:
        parts.append(f"{max(degrees) / 1000:.0f} °C")
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
    """Return the bandwidth of the memory that the backend computes from, and its source."""
    if "memory_bandwidth_gb_s" in given:
        return float(given["memory_bandwidth_gb_s"]) * GB, "config"
    shared = hardware["gpu"] is not None and hardware["gpu_memory_bytes"] is None
    apart = backend == Backend.CUDA and not shared
    names = [hardware["gpu"]] if apart else [hardware["chip"]]
    if shared:
        names.insert(0, hardware["gpu"])
    known = known_bandwidth(chips, [str(name) for name in names])
    if known:
        return known
    # Cores cannot read a GPU's own memory, so there is nothing to measure it with.
    return (None, None) if apart else (probe(), PROBED)


def _stated(given: Mapping[str, str | float]) -> Facts:
    """Return what is given under the names it has here."""
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


def _mac_core_kinds() -> tuple[int | None, int | None]:
    levels = (f"hw.perflevel{level}.physicalcpu" for level in (0, 1))
    return mac_core_kinds(output_of("sysctl", *levels))


def _split_by_capacity(cpus: Path) -> tuple[set[int], set[int]]:
    """Return the CPUs above and below the widest gap between the capacities the kernel gives."""
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
    """Return how many cores these CPUs are: threads of one core name the same siblings."""
    return len(
        {text_of(cpus / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in numbers}
    )


def _mac_gpu() -> Facts:
    return apple_gpu(processor_name(), output_of("ioreg", "-rd1", "-c", "AGXAccelerator"))


def _nvidia_gpu() -> Facts:
    asked = ("--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    return nvidia_gpu(output_of("nvidia-smi", *asked))


def _mac_power_source() -> str | None:
    return mac_power_source(output_of("pmset", "-g", "batt"))


def _battery_power_source() -> str | None:
    battery = psutil.sensors_battery()
    if battery is None or battery.power_plugged is None:
        return None
    return "mains" if battery.power_plugged else "battery"


def _mac_thermal_state() -> str | None:
    return mac_thermal_state(output_of("pmset", "-g", "therm"))


def _numbers(folder: Path, pattern: str) -> list[int]:
    texts = [text_of(file) for file in folder.glob(pattern)]
    return [int(text) for text in texts if text.isdecimal()]
