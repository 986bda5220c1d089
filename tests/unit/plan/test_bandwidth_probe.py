"""The probe of the memory's bandwidth."""

import numpy as np
import psutil

from specmoe.plan import bandwidth_probe


def test_this_machine_reads_faster_than_a_disk_and_slower_than_its_caches(monkeypatch):
    monkeypatch.setattr(bandwidth_probe, "PASS_S", 0.02)
    monkeypatch.setattr(bandwidth_probe, "MOST_BYTES", 2**28)
    assert 1e8 < bandwidth_probe.probe() < 1e13


def test_the_pass_with_the_highest_total_of_all_threads_counts(monkeypatch):
    monkeypatch.setattr(bandwidth_probe, "physical_cores", lambda: 3)
    monkeypatch.setattr(bandwidth_probe, "_read_in_step", lambda part, start: [1.0, 5.0, 2.0])
    assert bandwidth_probe.probe() == 15.0


def test_a_machine_with_little_free_memory_is_probed_with_less(monkeypatch):
    parts = []
    memory = psutil.virtual_memory()._replace(available=8 * 2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(bandwidth_probe, "physical_cores", lambda: 4)
    monkeypatch.setattr(
        bandwidth_probe, "_read_in_step", lambda part, start: parts.append(part) or [1.0]
    )
    bandwidth_probe.probe()
    assert parts == [2**18] * 4


def test_a_rate_is_bytes_read_over_time(monkeypatch):
    clock = iter([0.0, 0.0, 0.5, 2.0])
    monkeypatch.setattr(bandwidth_probe.time, "perf_counter", lambda: next(clock))
    assert bandwidth_probe._rate(np.ones(1000, np.int32), 1.0) == 2 * 4000 / 2.0
