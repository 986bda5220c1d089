"""NVIDIA's GPUs by their driver's library (NVML); tested on made answers, never with a GPU.

Import this module only where GPUs are asked for: pynvml takes a twentieth of a second.
"""

from collections.abc import Callable
from typing import Any

import pynvml

# The reasons for a lower clock that count: thermal slowdown by software or hardware, and the power
# brake of the power supply. Not these: an idle GPU, clocks that a user set, the software's power
# cap (the normal state of full load), and the general bit of the hardware, which a change of the
# power state sets too.
THROTTLED = (
    pynvml.nvmlClocksEventReasonSwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
)


def gpus() -> list[tuple[str, int | None]]:
    """Return the name of each GPU and the bytes of its memory, None if it shares the system's."""
    found = []
    for gpu in _handles(""):
        size = _ask(pynvml.nvmlDeviceGetMemoryInfo, gpu)
        found.append((str(_ask(pynvml.nvmlDeviceGetName, gpu)), size and size.total))
    return found


def clock_and_throttling(chosen: str) -> tuple[int | None, bool | None]:
    """Return the lowest clock of GPUs in MHz, and whether one lowers it; None is unknown.

    `chosen` has their numbers or UUIDs, as CUDA_VISIBLE_DEVICES; empty means all.
    """
    clocks, throttled = [], []
    for gpu in _handles(chosen):
        clock = _ask(pynvml.nvmlDeviceGetClockInfo, gpu, pynvml.NVML_CLOCK_SM)
        reasons = _ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons, gpu)
        if reasons is None:  # drivers before R535 know the older name
            reasons = _ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu)
        clocks += [] if clock is None else [clock]
        throttled += [] if reasons is None else [bool(reasons & THROTTLED)]
    return min(clocks, default=None), any(throttled) if throttled else None


def _handles(chosen: str) -> list[Any]:
    """Return NVML's handles of GPUs; none without a driver, or if one is not there."""
    try:
        pynvml.nvmlInit()  # repeated calls only count
        every = map(str, range(pynvml.nvmlDeviceGetCount()))
        return [
            pynvml.nvmlDeviceGetHandleByIndex(int(name))
            if name.isdecimal()
            else pynvml.nvmlDeviceGetHandleByUUID(name)
            for name in (chosen.replace(" ", "").split(",") if chosen else every)
        ]
    except pynvml.NVMLError:
        return []


def _ask(question: Callable[..., Any], gpu: Any, *arguments: int) -> Any:
    """Return what a GPU answers, None if it cannot."""
    try:
        return question(gpu, *arguments)
    except pynvml.NVMLError:
        return None
