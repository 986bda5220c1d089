"""Other processes that use the CPUs while a block is measured, by name, with their shares.

Names only: command lines may hold secrets. Threads of the kernel are among them.
"""

import os
import re
import time
from collections import Counter
from typing import Any

import psutil

_KTHREADD = 2  # the parent of all threads of a Linux kernel
_LEAST_SHARE, _MOST_NAMED = 0.02, 3  # what is worth a word

Usage = tuple[float, dict[tuple[int, str], float]]
"""A time, and the CPU time of each process so far, by id and name; in seconds."""


def snapshot() -> Usage:
    """Return what processes have used, other than this one and those that it started.

    It takes some milliseconds, so it is taken before and after a block and not during a run.
    """
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    used_s = {}
    for process in psutil.process_iter(["pid", "ppid", "name", "cpu_times"]):
        pid, parent, name, times = (
            process.info[key] for key in ("pid", "ppid", "name", "cpu_times")
        )
        if times is None or pid in own:  # macOS tells nothing of other users' processes
            continue
        if parent == _KTHREADD:
            name = f"{re.split('[.:/]', name)[0]} (kernel)"  # less the CPU that it is for
        used_s[pid, name] = times.user + times.system
    return time.monotonic(), used_s


def busiest(before: Usage, after: Usage) -> list[tuple[str, float]]:
    """Return who used most between two snapshots, by name, with their shares of all CPUs' time.

    Processes of one name count together. One that ended meanwhile is not seen.
    """
    all_s = (after[0] - before[0]) * (psutil.cpu_count() or 1)
    shares: Any = Counter()
    for (pid, name), used_s in after[1].items():
        shares[name] += (used_s - before[1].get((pid, name), 0.0)) / all_s
    most = shares.most_common(_MOST_NAMED)
    return [(name, share) for name, share in most if share >= _LEAST_SHARE]


def describe_others(found: list[tuple[str, float]]) -> str:
    """Return the text of `busiest`; empty for nobody."""
    named = ", ".join(f"{name} {share:.0%}" for name, share in found)
    return f"beside it {named} of the CPUs" if named else ""
