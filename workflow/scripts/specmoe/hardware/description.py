"""A campaign's machine: its full description, the bandwidth of its memory, and its kind.

`machine_facts` returns a description, of `machines/r<repeat>.json`; `machine.json` is that of the
campaign's machine, or of the first of several, each of which is in `machines`. A fact that the
system does not report is null. macOS was tested on recorded output only, and no GPU was there.
"""

import json
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import psutil

from specmoe.config.engines import COPYING, Backend
from specmoe.errors import MeasurementError
from specmoe.files import ROOT, named_if_damaged, read_record, replace_text
from specmoe.hardware.disturbance import Budget, Watch, measure_undisturbed
from specmoe.hardware.machine import (
    Device,
    machine_id,
    measuring_lock,
    nvidia_gpus,
    output_of,
    physical_cores,
    processor_name,
)
from specmoe.records import first_changes
from specmoe.yaml_files import read_yaml

MachineFacts = dict[str, str | int | float | None]

PROBED = "probe: sustained reads of the system's memory by all physical cores"
MOST_BYTES = 2**30
PASSES = 5
PASS_S = 0.25

GB = 10**9  # vendors give bandwidth in powers of ten
GIB = 2**30  # vendors give memory in powers of two despite its label

_KIND = (
    *("chip", "architecture", "physical_cores", "logical_cores", "memory_bytes"),
    *("gpu", "gpu_count", "gpu_memory_bytes"),
)
_BANDWIDTH, _SOURCE = "memory_bandwidth_bytes_per_second", "memory_bandwidth_source"


def machine_facts(
    backend: Backend,
    given: Mapping[str, str | float],
    probe: Callable[[], float],
    devices: Sequence[Device] = (),
) -> MachineFacts:
    """Return what a plan and a paper say about the machine.

    `given` holds what the user states, which overrides what is found: chip, memory_gb,
    memory_bandwidth_gb_s, gpu, gpu_memory_gb. `probe` measures the bandwidth of the system's
    memory, if neither it nor the table of chips gives it. `devices` are those that the engine
    lists; backends without a tool of their own take the GPUs from it. The memory and bandwidth of
    GPUs are null if they are unknown or if the GPUs share the system's memory.
    """
    gpus = _gpus(backend, devices)
    hardware: MachineFacts = {
        "id": machine_id(),
        "chip": processor_name(),
        "architecture": platform.machine(),
        "physical_cores": physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "gpu": " + ".join(dict.fromkeys(name for name, _ in gpus)) or None,
        "gpu_count": len(gpus) or None,
        "gpu_memory_bytes": sum(size or 0 for _, size in gpus) or None,
        "system": _system(),
        "given": ", ".join(sorted(given)),
        "devices": ", ".join(f"{device.name}: {device.description}" for device in devices) or None,
    }
    hardware |= stated(given)
    if hardware[_BANDWIDTH] is None:
        hardware[_BANDWIDTH], hardware[_SOURCE] = _bandwidth(hardware, backend, probe)
    return hardware


def stated(given: Mapping[str, str | float]) -> MachineFacts:
    """Return what the user states, under the names of the description; null for no bandwidth."""
    bandwidth = given.get("memory_bandwidth_gb_s")
    facts: MachineFacts = {
        name.replace("_gb", "_bytes"): fact if isinstance(fact, str) else round(fact * GIB)
        for name, fact in given.items()
        if name != "memory_bandwidth_gb_s"
    }
    rate = bandwidth and float(bandwidth) * GB
    return facts | {_BANDWIDTH: rate, _SOURCE: "config" if rate else None}


def _gpus(backend: Backend, devices: Sequence[Device]) -> list[tuple[str, int | None]]:
    """Return the name of each GPU, and the bytes of its own memory.

    Of a GPU that shares the system's memory, an engine's device has the part that its driver lets
    it have.
    """
    if devices and backend in (Backend.HIP, Backend.VULKAN):
        return [(device.description, device.memory_bytes) for device in devices]
    if platform.system() != "Darwin":
        return nvidia_gpus()
    chip, printed = processor_name(), output_of("ioreg", "-rd1", "-c", "AGXAccelerator")
    cores = re.search(r'"gpu-core-count" = (\d+)', printed)
    name = f"{chip}, {cores[1]}-core GPU" if cores else chip
    return [(name, None)] if chip.startswith("Apple") else []


def _bandwidth(
    hardware: MachineFacts, backend: Backend, probe: Callable[[], float]
) -> tuple[float | None, str | None]:
    """Return the bandwidth of the memory that the backend reads weights from, and its source."""
    shared = hardware["gpu"] is not None and hardware["gpu_memory_bytes"] is None
    apart = backend in COPYING and not shared
    names = [str(hardware["gpu"])] if apart or shared else []
    names += [] if apart else [str(hardware["chip"])]
    known = known_chips()
    # Names match as a whole: `Apple M2 Ultra` is not `Apple M2`.
    for name in filter(known.__contains__, names):
        return known[name]["gb_per_second"] * GB, f"table: {name}, {known[name]['source']}"
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


def known_chips() -> dict[str, dict[str, Any]]:
    """Return the entry of every name in the table of chips."""
    table = read_yaml(ROOT / "resources/hardware/memory_bandwidth.yaml")
    return {name: entry for entry in table for name in entry["names"]}


def bandwidth_of(machine: Mapping[str, Any]) -> float | None:
    """Return the bandwidth of a description; raises ValueError for one that no machine has."""
    rate = machine[_BANDWIDTH]
    if rate is not None and not rate > 0:
        raise ValueError(f"{_BANDWIDTH} is {rate}")
    return rate and float(rate)


def collect(machines: Sequence[Mapping[str, Any]], *, shared: bool) -> dict[str, Any]:
    """Return the first description of a campaign's machine, with the highest bandwidth of all.

    Nothing raises the result of a probe (see `probe`). A shared campaign has a description for each
    block; of each machine one, of all of its own, is in `machines`, sorted by id.
    """
    whole = dict(machines[0])
    if shared:
        ids = sorted({str(facts["id"]) for facts in machines})
        of_each = ([facts for facts in machines if str(facts["id"]) == name] for name in ids)
        whole["machines"] = [collect(described, shared=False) for described in of_each]
    rates = [float(facts[_BANDWIDTH]) for facts in machines if facts[_SOURCE] == PROBED]
    if len(rates) > 1:
        spread = f"the highest of {len(rates)}, from {min(rates) / GB:.0f} GB/s on"
        whole |= {_BANDWIDTH: max(rates), _SOURCE: f"{PROBED}; {spread}"}
    return whole


def write_description(
    facts: MachineFacts, given: Mapping[str, str | float], out: Path, first: Path | None = None
) -> None:
    """Write the description of this machine; where several share a campaign, compare it.

    `first` is the description of the first of them, which that one writes. It is no input of jobs,
    since snakemake 9.27 would not look at what is missing behind it. Machines of one kind have the
    same processor, cores, memory (in GiB) and GPU; raises MeasurementError for one of another kind.
    """
    written = json.dumps(facts, indent=1) + "\n"
    if first and first.exists():
        with named_if_damaged(first):
            # What the user states now is no difference.
            if differing := first_changes(*map(_kind, (read_record(first) | stated(given), facts))):
                raise MeasurementError(
                    f"machine {facts['id']} is of another kind than the campaign's first one"
                    f" ({differing}); give its runs a campaign.name of their own"
                )
    elif first:
        replace_text(first, written)
    replace_text(out, written)


def _kind(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what machines of one kind share; their kernels reserve a few MB more or less."""
    kind = {name: facts[name] for name in _KIND}
    sizes = [name for name in _KIND if name.endswith("_bytes") and kind[name]]
    return kind | {name: round(kind[name] / GIB) for name in sizes}


def probe_alone() -> float:
    """Measure the bandwidth with no other measurement, and once more if it was disturbed.

    A probe beside other programs is low. Nothing raises it, so the highest counts, not the last.
    """
    rates: list[float] = []
    with measuring_lock():
        measure_undisturbed(
            lambda: rates.append(probe()), lambda: Watch(None, Backend.CPU, {}), Budget(1, 1)
        )
    return max(rates)


def probe() -> float:
    """Measure the sustained read bandwidth of the system's memory, in bytes a second.

    One thread per physical core reads its own part of up to 1 GiB repeatedly. The best of five
    passes counts, after a shorter one to warm up: two seconds. Programs get that, which is less
    than the advertised peak; on a two-core virtual machine (EPYC, Zen 5) it was between 9 percent
    below and 8 percent above compiled loops that only read. It is low while other programs use the
    memory, and high where caches hold a large part of 1 GiB.
    """
    import numpy as np  # which a machine with a known bandwidth does not need

    threads = physical_cores()
    size = min(MOST_BYTES, psutil.virtual_memory().available // 8) // threads
    # Here, because a thread that got no memory would leave the others waiting.
    parts, start = [np.empty(size // 4, np.int32) for _ in range(threads)], Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        rates = list(pool.map(lambda part: _read_in_step(part, start), parts))
    totals: list[float] = [sum(together) for together in zip(*rates, strict=True)]
    return max(totals)


def _read_in_step(numbers: Any, start: Barrier) -> list[float]:
    """Return this thread's rate in each pass; all threads of the barrier start a pass together."""
    # The reading thread fills its part, so that the kernel places it nearest to the thread's core.
    numbers.fill(1)
    rates = []
    for seconds in [PASS_S / 2, *[PASS_S] * PASSES]:
        start.wait()
        began, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - began) < seconds:
            # Of numpy's reductions, `max` is nearest to compiled code that only reads: others spend
            # time on arithmetic, and `dot` starts threads of its own.
            numbers.max()
            count += numbers.nbytes
        rates.append(count / elapsed)
    return rates[1:]
