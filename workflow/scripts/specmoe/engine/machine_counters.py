"""The counters of a machine and of a server's process, and the clocks and heat of the machine.

A value that a system does not report is None. macOS was tested on written texts only.
"""

import os
import platform
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from specmoe.config.backend import Backend
from specmoe.engine.machine_id import output_of, text_of

# The system counts CPU time in ticks, and the difference of two counts may be one tick off.
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# The levels 0 to 4 of a Mac (libkern/OSThermalNotification.h).
PRESSURES = ("nominal", "moderate", "heavy", "trapping", "sleeping")
PRESSURE_NAME = "com.apple.system.thermalpressurelevel"


class Counters(NamedTuple):
    """Counters at one moment; all times in seconds."""

    clock_s: float
    busy_s: float  # CPU time of all processes
    steal_s: float | None  # time that the hypervisor kept from CPUs that had work
    own_s: float  # CPU time of this process, the server's client
    server_s: float | None  # CPU time of all threads of the server, ended ones too
    waited_s: Mapping[int, float] | None  # by thread: runnable, but not running
    switches: Mapping[int, int] | None  # by thread: switches against its will


class Condition(NamedTuple):
    """Clocks and heat at one moment."""

    gpu_clock_mhz: int | None = None  # the lowest of several GPUs
    gpu_throttled: bool | None = None  # any of several GPUs
    thermal_pressure: str | None = None  # one of PRESSURES


def read_counters(pid: int | None) -> Counters:
    """Return the counters; those of process `pid` are None if it has ended.

    Without one, they are of all tools that this process has run to their end.
    """
    host = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    try:
        times = psutil.Process(pid).cpu_times()
        tools_s = times.children_user + times.children_system
        server_s = times.user + times.system if pid else tools_s
    except psutil.Error:
        server_s = None
    # Empty on macOS, and of tools that have ended.
    threads = list(Path(f"/proc/{pid or 0}/task").glob("[0-9]*"))
    waited = {int(thread.name): waited_s(text_of(thread / "schedstat")) for thread in threads}
    switched = {int(thread.name): switches(text_of(thread / "status")) for thread in threads}
    return Counters(
        clock_s=time.monotonic(),
        busy_s=sum(getattr(host, kind, 0) for kind in kinds),
        steal_s=getattr(host, "steal", None),
        own_s=time.process_time(),
        server_s=server_s,
        waited_s={thread: value for thread, value in waited.items() if value is not None} or None,
        switches={thread: value for thread, value in switched.items() if value is not None} or None,
    )


def read_condition(backend: Backend, gpus: str) -> Condition:
    """Return clocks and heat; `gpus` are the engine's CUDA_VISIBLE_DEVICES, empty for all."""
    if platform.system() == "Darwin":
        told = output_of("notifyutil", "-g", PRESSURE_NAME)
        return Condition(thermal_pressure=mac_pressure(told))
    if backend != Backend.CUDA:
        return Condition()
    from specmoe.engine.nvidia import clock_and_throttling

    return Condition(*clock_and_throttling(gpus))


def waited_s(schedstat: str) -> float | None:
    """Return how long a thread was runnable but not running, from its `schedstat`.

    The fields are nanoseconds on a CPU, nanoseconds waited, and turns; a kernel without this
    accounting prints zeros (Linux, fs/proc/base.c).
    """
    fields = schedstat.split()
    return int(fields[1]) / 1e9 if len(fields) == 3 and fields != ["0", "0", "0"] else None


def switches(status: str) -> int | None:
    """Return how often a thread lost its CPU against its will, from its `status`."""
    found = re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)$", status, re.MULTILINE)
    return int(found[1]) if found else None


def mac_pressure(notifyutil: str) -> str | None:
    """Return the thermal pressure from notifyutil's line of a name and a number."""
    found = re.fullmatch(rf"{re.escape(PRESSURE_NAME)} (\d+)", notifyutil.strip())
    level = int(found[1]) if found else len(PRESSURES)
    return PRESSURES[level] if level < len(PRESSURES) else None
