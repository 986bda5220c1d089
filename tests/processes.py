"""Watching processes in tests: what is alive, and waiting without a clock that decides."""

import os
import time
from pathlib import Path


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # An orphan nobody has reaped yet is no longer running.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def eventually(condition, patience_s: float = 60):
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)
    return value
