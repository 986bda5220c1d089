"""Other processes that used the CPUs, by name."""

import os
import subprocess
import sys

from specmoe.engine.others import busiest, snapshot


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
