"""The rule by which a disturbed run is measured again, and the counters that it reads."""

import os
import subprocess
import sys

import psutil
import pytest

from specmoe.config.engines import Backend
from specmoe.hardware.disturbance import (
    TICK_S,
    Budget,
    Observation,
    State,
    Watch,
    busiest,
    disturbance_reason,
    mac_pressure,
    measure_undisturbed,
    observe,
    read_state,
    snapshot,
    waited_s,
)

UNKNOWN = Observation(*[None] * len(Observation._fields))
QUIET = UNKNOWN._replace(steal_share=0.0, wait_share=0.001, others_share=0.0)
START = State(100.0, 50.0, 5.0, 1.0, 20.0, {7: 2.0, 8: 3.0})


@pytest.mark.parametrize(
    ("planted", "reason"),
    [
        ({"steal_share": 0.2}, "the hypervisor kept 20.0% of the CPU time"),
        ({"wait_share": 0.3}, "a thread of the server waited for a CPU for 30.0% of the run"),
        ({"wait_share": None, "others_share": 0.5}, "other processes used 50.0% of the CPUs"),
        ({"gpu_throttled": True}, "the GPU lowered its clock because of heat or its power supply"),
        ({"thermal_pressure": "heavy"}, "the machine was too hot (thermal pressure: heavy)"),
        ({}, None),
        ({"steal_share": 0.05, "wait_share": 0.05}, None),  # at the limits, not above
        ({"others_share": 0.5}, None),  # of CPUs that the server did not want: it did not wait
        ({"gpu_throttled": False}, None),
        ({"thermal_pressure": "moderate"}, None),
        (UNKNOWN._asdict(), None),
    ],
)
def test_a_run_is_rejected_with_the_reason_if_its_machine_was_disturbed(planted, reason):
    assert disturbance_reason(QUIET._replace(**planted)) == reason


def test_an_observation_is_the_difference_of_two_states():
    waited = {7: 2.5, 9: 4.0}  # thread 8 ended, thread 9 is new
    end = State(110.0, 66.0, 9.0 + TICK_S, 2.0, 32.0, waited, False, "heavy")
    seen = observe(START._replace(gpu_throttled=True), end)
    cpus = psutil.cpu_count() or 1
    assert seen.steal_share == pytest.approx(4 / (20 + TICK_S))
    assert seen.wait_share == pytest.approx(0.4)
    assert seen.others_share == pytest.approx((16 - 12 - 1 - 2 * TICK_S) / (10 * cpus))
    assert seen[3:] == (True, "heavy")


def test_what_the_system_does_not_count_is_unknown_and_not_zero():
    # Nor is one tick of steal in a short run.
    end = START._replace(clock_s=100.1, busy_s=50.1, steal_s=5.0 + TICK_S)
    assert observe(START, end).steal_share == 0
    bare = State(100.0, 50.0, None, 1.0, None, {})
    end = bare._replace(clock_s=101.0, busy_s=51.0)
    assert observe(bare, end) == UNKNOWN


STOLEN = QUIET._replace(steal_share=0.5)


@pytest.mark.parametrize(
    ("share", "seen", "attempt", "again", "rejected"),
    [
        (0.1, [QUIET], 1, 0, False),
        (0.1, [STOLEN, QUIET], 2, 1, False),
        (2, [STOLEN, STOLEN], 2, 1, True),
        (0, [STOLEN], 1, 0, True),
        (None, [STOLEN], 1, 0, False),
    ],
)
def test_a_disturbed_run_is_measured_once_more_if_the_budget_allows_it(
    monkeypatch, share, seen, attempt, again, rejected
):
    attempts, planted = iter(range(1, 10)), iter(seen)
    monkeypatch.setattr("specmoe.hardware.disturbance.observe", lambda *_: next(planted))
    watch, budget = Watch(os.getpid(), Backend.CPU, {}), Budget(share, 10)
    result, columns = measure_undisturbed(lambda: next(attempts), lambda: watch, budget)
    assert (result, columns["reruns"]) == (attempt, again)
    assert columns.items() >= seen[-1]._asdict().items()
    assert (columns["disturbed_reason"] is not None) == rejected


@pytest.mark.parametrize(
    ("share", "runs", "at_once", "granted"),
    [(0.1, 2, 1, 1), (0.1, 10, 1, 1), (0.1, 30, 1, 3), (0.1, 31, 1, 4), (0.1, 30, 15, 1),
     (0, 30, 1, 0), (None, 30, 1, 0)],
)  # fmt: skip
def test_a_budget_is_a_share_of_a_blocks_runs(share, runs, at_once, granted):
    budget = Budget(share, runs)
    assert sum(budget.take(at_once) for _ in range(runs)) == granted
    left = [Budget(share, runs, drawn / 100 + 0.005).left for drawn in range(100)]
    assert sum(left) == round(100 * (share or 0) * runs)  # on average it is that share


PRESSURE = "com.apple.system.thermalpressurelevel"


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (waited_s, "131391000 3003229000 2", 3.003229),
        *((waited_s, text, None) for text in ("", "0 0 0", "garbage")),
        (mac_pressure, f"{PRESSURE} 0", "nominal"),
        (mac_pressure, f"{PRESSURE} 2\n", "heavy"),
        *((mac_pressure, text, None) for text in (f"{PRESSURE} 9", "")),
    ],
)
def test_a_threads_waiting_and_a_macs_heat_are_read_where_they_are_counted(read, text, found):
    assert read(text) == found


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux counts the waiting of a thread")
def test_every_thread_of_a_process_has_a_counter():
    assert len(read_state(os.getpid()).waited_s) == psutil.Process().num_threads()


def test_a_process_that_ended_is_unknown_and_without_one_tools_that_ended_count():
    counters = read_state(max(psutil.pids()) + 10_000_000)
    assert (counters.server_s, counters.waited_s) == (None, {})
    before = read_state(None).server_s
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    assert read_state(None).server_s > before


def test_processes_of_one_name_count_together_and_small_ones_are_not_named(monkeypatch):
    monkeypatch.setattr("psutil.cpu_count", lambda: 2)
    before = 100.0, {(1, "browser"): 5.0, (2, "browser"): 1.0, (3, "ended"): 9.0}
    used = {(1, "browser"): 5.5, (2, "browser"): 1.5, (4, "kdamond (kernel)"): 3.0, (5, "sh"): 0.3}
    assert busiest(before, (110.0, used)) == [("kdamond (kernel)", 0.15), ("browser", 0.05)]


def test_a_snapshot_has_others_and_neither_this_process_nor_its_own():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        pids = {pid for pid, _ in snapshot()[1]}
        child.communicate(b"\n")
    assert pids
    assert pids.isdisjoint({os.getpid(), child.pid})
