"""Other processes that use the CPUs while a block is measured, by name, with their shares.

Names only: command lines may hold secrets. Threads of the kernel are among them.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psutil

_KTHREADD = 2  # the parent of all threads of a Linux kernel
LEAST_SHARE = 0.02  # of all CPUs, that is worth a word
_MOST_NAMED = 3


class Usage(NamedTuple):
    """The CPU time that processes have used so far."""

    clock_s: float
    used_s: Mapping[tuple[int, str], float]  # by id and name


def snapshot() -> Usage:
    """Return what processes have used, other than this one and those that it started.

    It takes some milliseconds, so it is taken before and after a block and not during a run.
    """
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    used = {}
    for process in psutil.process_iter(["pid", "ppid", "name", "cpu_times"]):
        pid, name, times = (process.info[key] for key in ("pid", "name", "cpu_times"))
        if times is None or pid in own:  # macOS tells nothing of other users' processes
            continue
        if process.info["ppid"] == _KTHREADD:
            name = f"{re.split('[.:/]', name)[0]} (kernel)"  # less the CPU that it is for
        used[pid, name] = times.user + times.system
    return Usage(time.monotonic(), used)


def busiest(before: Usage, after: Usage) -> list[tuple[str, float]]:
    """Return who used most between two snapshots, by name, with their shares of all CPUs' time.

    Processes of one name count together. One that ended meanwhile is not seen.
    """
    all_s = (after.clock_s - before.clock_s) * (psutil.cpu_count() or 1)
    shares: dict[str, float] = {}
    for (pid, name), used_s in after.used_s.items():
        more_s = used_s - before.used_s.get((pid, name), 0.0)
        shares[name] = shares.get(name, 0.0) + more_s / all_s
    most = sorted(shares.items(), key=lambda one: one[1], reverse=True)[:_MOST_NAMED]
    return [(name, share) for name, share in most if share >= LEAST_SHARE]


def describe_others(found: Iterable[tuple[str, float]]) -> str:
    """Return the text of `busiest`; empty for nobody."""
    named = ", ".join(f"{name} {share:.0%}" for name, share in found)
    return f"beside it {named} of the CPUs" if named else ""
