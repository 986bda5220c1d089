"""Counters of the system: texts of Linux and macOS, and a real process."""

import os
import subprocess
import sys

import psutil
import pytest

from specmoe.config.backend import Backend
from specmoe.engine import machine_counters
from specmoe.engine.machine_counters import (
    Condition,
    mac_pressure,
    read_condition,
    read_counters,
    switches,
    waited_s,
)

STATUS = """\
Name:\tllama-server
Threads:\t9
voluntary_ctxt_switches:\t2315
nonvoluntary_ctxt_switches:\t417
"""
PRESSURE = "com.apple.system.thermalpressurelevel"


def test_a_threads_waiting_and_its_involuntary_switches_are_read_where_the_kernel_counts_them():
    assert waited_s("131391000 3003229000 2") == 3.003229
    assert [waited_s(text) for text in ("", "0 0 0", "garbage")] == [None] * 3
    assert [switches(text) for text in (STATUS, "")] == [417, None]


@pytest.mark.parametrize(
    ("text", "pressure"),
    [
        (f"{PRESSURE} 0", "nominal"),
        (f"{PRESSURE} 2\n", "heavy"),
        (f"{PRESSURE} 9", None),
        ("notifyutil: failed", None),
        ("", None),
    ],
)
def test_a_macs_thermal_pressure_is_named(text, pressure):
    assert mac_pressure(text) == pressure


def test_no_tool_is_called_for_a_backend_without_a_gpu(monkeypatch):
    monkeypatch.setattr(machine_counters.platform, "system", lambda: "Linux")
    monkeypatch.setattr(machine_counters, "output_of", lambda *_: pytest.fail("a tool was called"))
    assert read_condition(Backend.CPU, "") == Condition()


def test_the_counters_of_a_process_that_ended_are_unknown():
    unused = max(psutil.pids()) + 10_000_000
    counters = read_counters(unused)
    assert (counters.server_s, counters.waited_s, counters.switches) == (None, None, None)
    assert counters.busy_s > 0


@pytest.mark.skipif(not psutil.LINUX, reason="the files of Linux")
def test_every_thread_of_a_process_is_counted():
    counters = read_counters(os.getpid())
    assert counters.switches is not None
    assert os.getpid() in counters.switches
    assert len(counters.switches) == psutil.Process().num_threads()


def test_without_a_process_the_time_is_that_of_the_tools_that_have_ended():
    before = read_counters(None).server_s
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    assert read_counters(None).server_s > before
