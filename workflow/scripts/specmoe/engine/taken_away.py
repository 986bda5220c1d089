"""What a run's machine gave to others, and the rule that has such a run measured again.

The rule is blind to speeds: it reads counters of the system as shares of the time they cover.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import psutil

from specmoe.config.backend import Backend
from specmoe.config.gate import Gate
from specmoe.engine.machine_counters import (
    PRESSURES,
    TICK_S,
    Condition,
    Counters,
    read_condition,
    read_counters,
)

T = TypeVar("T")

# `moderate` is the normal state of long work; a Mac lowers its clocks clearly from `heavy` on.
HIGH_PRESSURES = PRESSURES[PRESSURES.index("heavy") :]


class Observation(NamedTuple):
    """What happened to a run, under the names of a row's columns; None is unknown.

    `steal_share` and `others_share` are less the ticks by which they may be off. Otherwise a tick
    would weigh more in a shorter run, and the rule would see the speed.
    """

    steal_share: float | None  # of the CPU time that the machine asked for: kept by the hypervisor
    wait_share: float | None  # of the run: the longest that a thread was runnable but not running
    others_share: float | None  # of all CPUs' time: used by others than the server and its client
    involuntary_switches: int | None  # of all threads of the server
    cpu_share: float | None  # CPU time of the server over wall time times threads
    gpu_clock_mhz: int | None  # just after the run
    gpu_throttled: bool | None  # just before or just after the run
    thermal_pressure: str | None  # the higher one of before and after the run


class Measured(NamedTuple, Generic[T]):
    """The last attempt at a run."""

    result: T
    observation: Observation
    measured_again: int  # attempts before this one
    taken_away: str | None  # why the rule rejects this attempt too

    @property
    def columns(self) -> dict[str, Any]:
        """What a run's record holds of the attempts."""
        again = {"measured_again": self.measured_again, "taken_away": self.taken_away}
        return again | self.observation._asdict()


class State(NamedTuple):
    """What is known of the machine at one moment."""

    condition: Condition
    counters: Counters


class Watch(NamedTuple):
    """Observes the machine during the runs of one server."""

    # The engine's own process, see `Server.pid`; None: tools that end by themselves.
    pid: int | None
    threads: int
    backend: Backend
    gpus: str = ""  # the engine's CUDA_VISIBLE_DEVICES; empty means all

    def start(self) -> State:
        """Return the state before a run."""
        return State(read_condition(self.backend, self.gpus), read_counters(self.pid))

    def stop(self, start: State) -> Observation:
        """Return what happened since `start`."""
        # In the opposite order: the tools that read the condition are no part of the run.
        counters = read_counters(self.pid)
        end = State(read_condition(self.backend, self.gpus), counters)
        return observe(start, end, self.threads)


def measure_undisturbed(
    run: Callable[[], T],
    prepare: Callable[[], Watch],
    gate: Gate,
    report: Callable[[int, str], None],
) -> Measured[T]:
    """Call `run` until the rule accepts an attempt, at most `gate.retries` times more.

    `prepare` is called before each attempt and returns what observes it. The last attempt counts
    even if the rule rejects it, so no result decides which one counts. `report` is called after
    each attempt that the rule rejects, with its number from 1 and the reason.
    """
    for again in range(gate.retries + 1):
        watch = prepare()
        start = watch.start()
        result = run()
        observation = watch.stop(start)
        reason = was_taken_away(observation, gate)
        if reason is None:
            break
        report(again + 1, reason)
    return Measured(result, observation, again, reason)


def was_taken_away(seen: Observation, gate: Gate) -> str | None:
    """Return why the machine was not the run's own, in words, or None.

    `cpu_share` and `involuntary_switches` have no limit, because they depend on the method and on
    the engine's flags too.
    """
    if seen.steal_share is not None and seen.steal_share > gate.steal_share:
        return f"the hypervisor kept {seen.steal_share:.1%} of the CPU time"
    if seen.wait_share is not None:
        if seen.wait_share > gate.wait_share:
            return f"a thread of the server waited for a CPU for {seen.wait_share:.1%} of the run"
    elif seen.others_share is not None and seen.others_share > gate.others_share:
        return f"other processes used {seen.others_share:.1%} of the CPUs"
    if seen.gpu_throttled:
        return "the GPU lowered its clock because of heat or its power supply"
    if seen.thermal_pressure in HIGH_PRESSURES:
        return f"the machine was too hot (thermal pressure: {seen.thermal_pressure})"
    return None


def observe(before: State, after: State, threads: int) -> Observation:
    """Return what happened between two states to a server with `threads` threads."""
    was, now, start, end = before.condition, after.condition, before.counters, after.counters
    wall_s, busy_s = end.clock_s - start.clock_s, end.busy_s - start.busy_s
    steal_share = cpu_share = others_share = None
    if start.steal_s is not None and end.steal_s is not None:
        steal_s = end.steal_s - start.steal_s
        steal_share = max(steal_s - TICK_S, 0) / max(busy_s + steal_s, TICK_S)
    if start.server_s is not None and end.server_s is not None:
        server_s = end.server_s - start.server_s
        cpu_share = server_s / (wall_s * threads)
        # Two ticks: one of the machine's time, one of the server's.
        others_s = busy_s - server_s - (end.own_s - start.own_s) - 2 * TICK_S
        others_share = max(others_s, 0) / (wall_s * (psutil.cpu_count() or 1))
    waited_s = _increases(start.waited_s, end.waited_s)
    switches = _increases(start.switches, end.switches)
    pressures = {was.thermal_pressure, now.thermal_pressure} - {None}
    throttled = {was.gpu_throttled, now.gpu_throttled} - {None}
    return Observation(
        steal_share=steal_share,
        # Not their sum or mean: threads meet after every operation of a graph, so all wait for the
        # one that waits, however many they are.
        wait_share=max(waited_s) / wall_s if waited_s else None,
        others_share=others_share,
        involuntary_switches=int(sum(switches)) if switches else None,
        cpu_share=cpu_share,
        gpu_clock_mhz=now.gpu_clock_mhz,
        gpu_throttled=any(throttled) if throttled else None,
        thermal_pressure=max(pressures, key=PRESSURES.index, default=None),
    )


def _increases(
    before: Mapping[int, float] | None, after: Mapping[int, float] | None
) -> list[float]:
    """Return the increase of each thread's counter; threads that ended are not known any more."""
    if before is None or after is None:
        return []
    return [value - before.get(thread, 0) for thread, value in after.items()]
