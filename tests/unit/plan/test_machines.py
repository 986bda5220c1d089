"""Machines of one kind are told from others, and their descriptions become one."""

import json
from pathlib import Path

import pytest

from specmoe.config.backend import Backend
from specmoe.errors import MeasurementError
from specmoe.plan import machines
from specmoe.plan.hardware import PROBED
from specmoe.plan.machines import collect, describe_host

BANDWIDTH, SOURCE = "memory_bandwidth_bytes_per_second", "memory_bandwidth_source"


def machine(name="0" * 12, bandwidth=5e10, source=PROBED, **facts):
    return {
        "id": name,
        "chip": "EPYC",
        "architecture": "x86_64",
        "physical_cores": 2,
        "logical_cores": 4,
        "memory_bytes": 24 * 2**30 + 5_000_000,
        "gpu": None,
        "gpu_count": None,
        "gpu_memory_bytes": None,
        BANDWIDTH: bandwidth,
        SOURCE: source,
    } | facts


def test_the_fastest_probe_of_all_repeats_counts():
    facts = collect([machine(bandwidth=rate) for rate in (2e10, 5e10, 3e10)], shared=False)
    found = f"{PROBED}; the highest of 3, from 20 GB/s on"
    assert (facts[BANDWIDTH], facts[SOURCE]) == (5e10, found)
    assert facts["chip"] == "EPYC"


@pytest.mark.parametrize(
    "repeats",
    [
        [machine()],
        [machine(bandwidth=8e11, source="config")] * 3,
        [machine(bandwidth=None, source=None)] * 3,
    ],
)
def test_a_single_probe_and_a_bandwidth_from_another_source_stay(repeats):
    assert collect(repeats, shared=False) == repeats[0]


def test_repeats_on_two_machines_are_refused_unless_the_campaign_is_shared():
    blocks = [machine(), machine("1" * 12, memory_bytes=24 * 2**30), machine()]
    with pytest.raises(MeasurementError, match=r"on 2 machines \(EPYC, 0{12} and EPYC, 1{12}\)"):
        collect(blocks, shared=False)
    whole = collect(blocks, shared=True)
    assert [one["id"] for one in whole["machines"]] == ["0" * 12, "1" * 12]
    assert (whole["id"], whole[BANDWIDTH]) == ("0" * 12, 5e10)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"chip": "Xeon"}, "chip 'Xeon', not 'EPYC'"),
        ({"memory_bytes": 48 * 2**30}, "memory 48, not 24"),
        ({"gpu": "H200", "gpu_count": 1}, "gpu 'H200', not None, gpu_count 1, not None"),
    ],
)
def test_a_machine_of_another_kind_is_refused_by_what_differs(other, named):
    with pytest.raises(MeasurementError, match=f"^machine 1{{12}} is of another kind .*: {named};"):
        collect([machine(), machine("1" * 12, **other)], shared=True)


def test_the_first_machine_of_a_campaign_is_what_others_are_compared_with(tmp_path, monkeypatch):
    def describe(name, given=None, **facts):
        monkeypatch.setattr(machines, "describe", lambda *_: machine(name, **facts))
        out, like = tmp_path / f"{name}.json", tmp_path / "hosts/r0.json"
        describe_host(Backend.CPU, given or {}, {}, Path("chips"), out, like=like)
        return json.loads(out.read_text()), json.loads(like.read_text())

    one, first = describe("1")
    assert one == first
    assert describe("2") == (machine("2"), first)
    with pytest.raises(MeasurementError, match="chip 'Xeon', not 'EPYC'"):
        describe("3", chip="Xeon")
    describe("3", {"chip": "Xeon"}, chip="Xeon")  # the user says so now
