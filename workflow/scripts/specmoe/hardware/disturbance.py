"""Disturbances of a run by other load, the rule for them, and the processes that make it.

The rule is blind to speeds: it reads counters of the system as shares of the time they cover. A
value that a system does not report is None. macOS was tested on written texts only.
"""

import os
import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil

from specmoe.config.engines import Backend
from specmoe.hardware.machine import is_throttled, output_of, text_of

_T = TypeVar("_T")

# The system counts CPU time in ticks, and the difference of two counts may be one tick off.
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# Limits of the rule. They are reasoned, not fitted: a run of whose time a share is taken away is
# slower by about that share, and half of the audit's tolerance of 10 percent leaves room for the
# rest. They look at what the machine gave to others, never at a speed.
STEAL_SHARE = 0.05  # of the CPU time that the machine asked for: kept by the hypervisor
WAIT_SHARE = 0.05  # of the run: one thread of the server waited for a CPU (Linux)
# Weaker evidence, hence wider: others may have used CPUs that the server did not want. It counts
# only where the system does not count waiting (macOS).
OTHERS_SHARE = 0.1  # of all CPUs: used by other processes

# The levels 0 to 4 of a Mac (libkern/OSThermalNotification.h). `moderate` is the normal state of
# long work; it lowers its clocks clearly from `heavy` on.
PRESSURES = ("nominal", "moderate", "heavy", "trapping", "sleeping")
TOO_HOT = PRESSURES[2:]
PRESSURE_NAME = "com.apple.system.thermalpressurelevel"

KTHREADD = 2  # the parent of all threads of a Linux kernel
LEAST_SHARE, MOST_NAMED = 0.02, 3  # of other processes: what is worth a word


class State(NamedTuple):
    """What is known of the machine at one moment; all times in seconds."""

    clock_s: float
    busy_s: float  # CPU time of all processes
    steal_s: float | None  # time that the hypervisor kept from CPUs that had work
    own_s: float  # CPU time of this process, the server's client
    server_s: float | None  # CPU time of all threads of the server, ended ones too
    waited_s: Mapping[int, float]  # by thread: runnable, but not running; none are unknown
    gpu_throttled: bool | None = None  # any of several GPUs
    thermal_pressure: str | None = None  # one of PRESSURES


class Observation(NamedTuple):
    """What happened to a run, under the names of a row's columns; None is unknown.

    `steal_share` and `others_share` are less the ticks by which they may be off. Otherwise a tick
    would weigh more in a shorter run, and the rule would see the speed.
    """

    steal_share: float | None  # of the CPU time that the machine asked for: kept by the hypervisor
    wait_share: float | None  # of the run: the longest that a thread was runnable but not running
    others_share: float | None  # of all CPUs' time: used by others than the server and its client
    gpu_throttled: bool | None  # just before or just after the run
    thermal_pressure: str | None  # the higher one of before and after the run


class Watch(NamedTuple):
    """What is observed during the runs of one server."""

    # The engine's own process, see `Server.pid`; None: tools that end by themselves.
    pid: int | None
    backend: Backend
    environment: Mapping[str, str]  # the engine's: CUDA_VISIBLE_DEVICES chooses among GPUs


class Budget:
    """How many runs of a block may be measured again because they were disturbed, once each."""

    def __init__(self, share: float | None, runs: int, drawn: float = 0.0):
        """Give a share of runs, rounded up if its rest is over `drawn`; None: none is judged."""
        self.judges = share is not None
        whole, rest = divmod(round((share or 0) * runs, 6), 1)
        self.left = int(whole) + (rest > drawn)

    def take(self, runs: int) -> bool:
        """Take runs that are measured at once out of the budget; return whether any was left."""
        self.left -= runs
        return self.left > -runs


def measure_undisturbed(
    run: Callable[[], _T], prepare: Callable[[], Watch], budget: Budget, runs: int = 1
) -> tuple[_T, dict[str, Any]]:
    """Call `run`, and once more if it was disturbed and the budget allows it.

    Return its last result, which counts even if it is disturbed, and the record's columns about it.
    `prepare` is called before each attempt, of `runs` at once, and returns what is observed.
    """
    for again in (0, 1):
        watch = prepare()
        # The tools that read the condition are no part of the run.
        before, start = read_condition(watch), read_state(watch.pid)
        result = run()
        end, after = read_state(watch.pid), read_condition(watch)
        seen = observe(start._replace(**before), end._replace(**after))
        reason = disturbance_reason(seen) if budget.judges else None
        if reason is None or again or not budget.take(runs):
            break
    return result, {"reruns": again, "disturbed_reason": reason, **seen._asdict()}


def disturbance_reason(seen: Observation) -> str | None:
    """Return what disturbed a run, as text, or None."""
    if seen.steal_share is not None and seen.steal_share > STEAL_SHARE:
        return f"the hypervisor kept {seen.steal_share:.1%} of the CPU time"
    if seen.wait_share is not None:
        if seen.wait_share > WAIT_SHARE:
            return f"a thread of the server waited for a CPU for {seen.wait_share:.1%} of the run"
    elif seen.others_share is not None and seen.others_share > OTHERS_SHARE:
        return f"other processes used {seen.others_share:.1%} of the CPUs"
    if seen.gpu_throttled:
        return "the GPU lowered its clock because of heat or its power supply"
    if seen.thermal_pressure in TOO_HOT:
        return f"the machine was too hot (thermal pressure: {seen.thermal_pressure})"
    return None


def observe(start: State, end: State) -> Observation:
    """Return what happened between two states."""
    wall_s, busy_s = end.clock_s - start.clock_s, end.busy_s - start.busy_s
    steal_share = others_share = None
    if start.steal_s is not None and end.steal_s is not None:
        steal_s = end.steal_s - start.steal_s
        steal_share = max(steal_s - TICK_S, 0) / max(busy_s + steal_s, TICK_S)
    if start.server_s is not None and end.server_s is not None:
        server_s = end.server_s - start.server_s
        # Two ticks: one of the machine's time, one of the server's.
        others_s = busy_s - server_s - (end.own_s - start.own_s) - 2 * TICK_S
        others_share = max(others_s, 0) / (wall_s * (psutil.cpu_count() or 1))
    # A thread that ended is not known any more.
    waited_s = [value - start.waited_s.get(thread, 0) for thread, value in end.waited_s.items()]
    pressures = {start.thermal_pressure, end.thermal_pressure} - {None}
    throttled = {start.gpu_throttled, end.gpu_throttled} - {None}
    return Observation(
        steal_share=steal_share,
        # Not their sum or mean: threads meet after every operation of a graph, so all wait for the
        # one that waits, however many they are.
        wait_share=max(waited_s) / wall_s if start.waited_s and waited_s else None,
        others_share=others_share,
        gpu_throttled=any(throttled) if throttled else None,
        thermal_pressure=max(pressures, key=PRESSURES.index, default=None),
    )


def read_state(pid: int | None) -> State:
    """Return the counters; those of process `pid` are None if it has ended.

    Without `pid`, they are of all tools that this process has run to their end.
    """
    system = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    try:
        times = psutil.Process(pid).cpu_times()
        server_s = times.user + times.system if pid else times.children_user + times.children_system
    except psutil.Error:
        server_s = None
    # Empty on macOS, and of tools that have ended.
    threads = list(Path(f"/proc/{pid or 0}/task").glob("[0-9]*"))
    waited = ((int(thread.name), waited_s(text_of(thread / "schedstat"))) for thread in threads)
    return State(
        clock_s=time.monotonic(),
        busy_s=sum(getattr(system, kind, 0) for kind in kinds),
        steal_s=getattr(system, "steal", None),
        own_s=time.process_time(),
        server_s=server_s,
        waited_s={thread: value for thread, value in waited if value is not None},
    )


def read_condition(watch: Watch) -> dict[str, Any]:
    """Return what is known of clocks and heat, see `State`."""
    if platform.system() == "Darwin":
        return {"thermal_pressure": mac_pressure(output_of("notifyutil", "-g", PRESSURE_NAME))}
    if watch.backend != Backend.CUDA:
        return {}
    return {"gpu_throttled": is_throttled(watch.environment.get("CUDA_VISIBLE_DEVICES", ""))}


def waited_s(schedstat: str) -> float | None:
    """Return how long a thread was runnable but not running, from its `schedstat`.

    The fields are nanoseconds on a CPU, nanoseconds waited, and turns; a kernel without this
    accounting prints zeros (Linux, fs/proc/base.c).
    """
    fields = schedstat.split()
    return int(fields[1]) / 1e9 if len(fields) == 3 and fields != ["0", "0", "0"] else None


def mac_pressure(notifyutil: str) -> str | None:
    """Return the thermal pressure from notifyutil's line of a name and a number."""
    told = re.fullmatch(rf"{re.escape(PRESSURE_NAME)} (\d+)", notifyutil.strip())
    return dict(enumerate(PRESSURES)).get(int(told[1])) if told else None


Usage = tuple[float, dict[tuple[int, str], float]]
"""A time, and the CPU time of each process so far, by id and name; in seconds."""


def snapshot() -> Usage:
    """Return what processes have used, other than this one and those that it started.

    Names only: command lines may hold secrets. Threads of the kernel are among them.
    It takes some milliseconds, so it is taken before and after a block and not during a run.
    """
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    used_s = {}
    keys = "pid", "ppid", "name", "cpu_times"
    for process in psutil.process_iter(keys):
        pid, parent, name, times = map(process.info.__getitem__, keys)
        if times is None or pid in ours:  # macOS tells nothing of other users' processes
            continue
        if parent == KTHREADD:
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
    return [(name, share) for name, share in shares.most_common(MOST_NAMED) if share >= LEAST_SHARE]
