"""Other processes that used the CPUs, by name."""

import os
import subprocess
import sys

from specmoe.engine.others import Usage, busiest, describe_others, snapshot


def test_processes_of_one_name_count_together_and_small_ones_are_not_named(monkeypatch):
    monkeypatch.setattr("psutil.cpu_count", lambda: 2)
    before = Usage(100.0, {(1, "browser"): 5.0, (2, "browser"): 1.0, (3, "ended"): 9.0})
    used = {
        (1, "browser"): 5.5,
        (2, "browser"): 1.5,
        (4, "kdamond (kernel)"): 3.0,
        (5, "shell"): 0.3,
    }
    assert busiest(before, Usage(110.0, used)) == [("kdamond (kernel)", 0.15), ("browser", 0.05)]
    assert describe_others([("x", 0.094), ("y", 0.02)]) == "beside it x 9%, y 2% of the CPUs"
    assert describe_others([]) == ""


def test_a_snapshot_has_others_and_neither_this_process_nor_its_own():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        pids = {pid for pid, _ in snapshot().used_s}
        assert pids
        assert pids.isdisjoint({os.getpid(), child.pid})
    finally:
        child.communicate(b"\n")
