"""The energy that a machine used, from counters that it keeps itself; never an estimate.

RAPL for the CPU, NVML for CUDA, zeus-apple-silicon for a Mac; the last two were tested on stand-ins
only. If a counter that what computes needs cannot be read, nothing is known.
"""

import ctypes
import importlib
import platform
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from specmoe.config.backend import Backend
from specmoe.engine.machine_id import text_of

POWERCAP = Path("/sys/class/powercap")
NVML = "libnvidia-ml.so.1"  # comes with the driver
# How long a block's servers are left alone, and then the time over which idle power is measured.
SETTLE_S = 1.0
IDLE_S = 2.0
# More than a package of processors draws. At less, one that may have gone round twice is unknown.
MOST_W = 600.0

_WAY_OUT = "`sudo chmod a+r {files}` lets you until the next boot, and a rule for udev for good"
_WAY_OUT += " (config/README.md)"


class UnreadableError(Exception):
    """A counter of energy cannot be read; the message says why, for a user."""


class Counter(NamedTuple):
    """A counter of energy."""

    name: str
    read: Callable[[], float]  # joules; raises UnreadableError
    range_j: float | None = None  # it starts again from zero above this; None: unknown, or never


class Reading(NamedTuple):
    """All counters at one moment."""

    clock_s: float
    joules: Mapping[str, float | None]


class Meter(NamedTuple):
    """The counters that together tell what a run used."""

    source: str  # in words
    counters: tuple[Counter, ...]
    idle_w: float | None = None  # what they showed while a block's servers were loaded and idle

    def read(self) -> Reading:
        """Return the counters now; one that cannot be read any more is None."""
        return Reading(time.monotonic(), {one.name: _read_or_none(one) for one in self.counters})

    def used_j(self, before: Reading, after: Reading) -> float | None:
        """Return the joules used between two readings; None if a counter does not tell."""
        elapsed_s = after.clock_s - before.clock_s
        used = [
            increase(before.joules[one.name], after.joules[one.name], one.range_j, elapsed_s)
            for one in self.counters
        ]
        known = [joules for joules in used if joules is not None]
        return sum(known) if len(known) == len(used) else None


class Search(NamedTuple):
    """The meter of a machine, if it has one, and words for a user about it."""

    meter: Meter | None
    words: str


def find_meter(
    backend: Backend, gpus: str = "", powercap: Path = POWERCAP, nvml: str = NVML
) -> Search:
    """Return the meter of what a backend computes on.

    `gpus` are the engine's CUDA_VISIBLE_DEVICES, empty for all.
    """
    more = ""
    try:
        if platform.system() == "Darwin":
            source, counters = "the chip's own counters, by zeus-apple-silicon", apple_counters()
        elif backend == Backend.CPU:
            source, counters = "RAPL", rapl_counters(powercap)
        elif backend == Backend.CUDA:
            source, counters = "NVML", nvml_counters(gpus, nvml)
            try:
                source, counters = "NVML and RAPL", (*counters, *rapl_counters(powercap))
            except UnreadableError as error:
                more = f"; without the processors: {error}"
        else:
            raise UnreadableError(f"no counter of a GPU by backend {backend} is known")
    except UnreadableError as error:
        return Search(None, f"not measured: {error}")
    names = ", ".join(one.name for one in counters)
    return Search(Meter(source, counters), f"{source} ({names}){more}")


def measure_idle(meter: Meter) -> Meter:
    """Return a meter with the power that it shows now, while nothing runs; it takes 3 seconds."""
    time.sleep(SETTLE_S)
    before = meter.read()
    time.sleep(IDLE_S)
    after = meter.read()
    used_j = meter.used_j(before, after)
    return meter._replace(
        idle_w=None if used_j is None else used_j / (after.clock_s - before.clock_s)
    )


def increase(
    before: float | None, after: float | None, range_j: float | None, elapsed_s: float
) -> float | None:
    """Return by how many joules a counter increased, which may have gone round once.

    None if it went back without a known range, or if it may have gone round more often.
    """
    if before is None or after is None:
        return None
    used_j = after - before
    if used_j < 0:
        if range_j is None:
            return None
        used_j += range_j
    again = range_j is not None and used_j + range_j <= MOST_W * elapsed_s
    return None if used_j < 0 or again else used_j


def rapl_counters(powercap: Path) -> tuple[Counter, ...]:
    """Return a counter for each package of the processors, without those of their parts.

    Linux, Documentation/power/powercap/powercap.rst: `energy_uj` counts microjoules up to
    `max_energy_range_uj`. Raises UnreadableError if there is none, or one cannot be read.
    """
    zones = sorted(powercap.glob("intel-rapl:*"))
    packages = [zone for zone in zones if text_of(zone / "name").startswith("package")]
    if not packages:
        raise UnreadableError(f"this machine has no {powercap}/intel-rapl:* of a processor")
    counters = []
    for zone in packages:
        most = text_of(zone / "max_energy_range_uj")
        range_j = int(most) / 1e6 if most.isdecimal() else None
        counters.append(Counter(zone.name, partial(_microjoules, zone / "energy_uj"), range_j))
    return _readable(counters)


def nvml_counters(gpus: str, library: str) -> tuple[Counter, ...]:
    """Return a counter for each GPU, as NVIDIA's driver keeps them since Volta.

    `gpus` are indices or UUIDs, empty for all. nvidia-smi has no field of them. Raises
    UnreadableError if the driver or one of the counters is missing.
    """
    try:
        nvml = ctypes.CDLL(library)
    except OSError as error:
        raise UnreadableError(f"NVIDIA's driver has no {library} here") from error
    _call(nvml, "nvmlInit_v2")
    if gpus:
        named = [name.strip() for name in gpus.split(",")]
    else:
        count = ctypes.c_uint()
        _call(nvml, "nvmlDeviceGetCount_v2", ctypes.byref(count))
        named = [str(index) for index in range(count.value)]
    return _readable([Counter(name, partial(_millijoules, nvml, name)) for name in named])


def apple_counters() -> tuple[Counter, ...]:
    """Return the counters of a Mac's chip: processor, GPU and, if it has one, memory.

    Raises UnreadableError without zeus-apple-silicon, which `pip install` adds.
    """
    try:
        monitor = importlib.import_module("zeus_apple_silicon").AppleEnergyMonitor()
        known = monitor.get_cumulative_energy()
    except (ImportError, AttributeError, RuntimeError) as error:
        raise UnreadableError(
            "`pip install zeus-apple-silicon` reads this Mac's counters, unverified so far"
        ) from error
    needed = ("cpu_total_mj", "gpu_mj")
    parts = [*needed, *(part for part in ("dram_mj",) if getattr(known, part, None) is not None)]

    def read(part: str) -> float:
        value = getattr(monitor.get_cumulative_energy(), part, None)
        if value is None:
            raise UnreadableError(f"this Mac counts no {part}")
        return float(value) / 1000

    return _readable([Counter(part, partial(read, part)) for part in parts])


def _readable(counters: list[Counter]) -> tuple[Counter, ...]:
    """Return counters, each of which was read once; raises UnreadableError."""
    for one in counters:
        one.read()
    return tuple(counters)


def _read_or_none(counter: Counter) -> float | None:
    try:
        return counter.read()
    except UnreadableError:
        return None


def _microjoules(file: Path) -> float:
    try:
        return int(file.read_text()) / 1e6
    except PermissionError as error:
        files = file.parent.with_name("intel-rapl:*") / file.name
        raise UnreadableError(f"you may not read {file}; {_WAY_OUT.format(files=files)}") from error
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{file} has no number") from error


def _millijoules(nvml: ctypes.CDLL, gpu: str) -> float:
    handle, energy = ctypes.c_void_p(), ctypes.c_ulonglong()
    by_index = gpu.isdecimal()
    _call(
        nvml,
        "nvmlDeviceGetHandleByIndex_v2" if by_index else "nvmlDeviceGetHandleByUUID",
        ctypes.c_uint(int(gpu)) if by_index else ctypes.c_char_p(gpu.encode()),
        ctypes.byref(handle),
    )
    _call(nvml, "nvmlDeviceGetTotalEnergyConsumption", handle, ctypes.byref(energy))
    return energy.value / 1000


def _call(nvml: ctypes.CDLL, name: str, *arguments: object) -> None:
    """Call a function of NVML; raises UnreadableError unless it returns 0, its success."""
    function = getattr(nvml, name, None)
    if function is None:
        raise UnreadableError(f"NVIDIA's driver is too old for {name}")
    if code := function(*arguments):
        raise UnreadableError(f"NVIDIA's driver refuses {name} (code {code})")
