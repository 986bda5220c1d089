"""Processes in tests: whether they are alive, and waiting for a condition."""

import time

import psutil


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(condition, patience_s: float = 60):
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)
    return value
