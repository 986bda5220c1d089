"""Machines of one kind are told from others, and their descriptions become one."""

import pytest

from specmoe.errors import MeasurementError
from specmoe.plan.hardware import PROBED
from specmoe.plan.machines import collect, collect_machines, refuse_other_kinds

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
    facts = collect([machine(bandwidth=rate) for rate in (2e10, 5e10, 3e10)])
    found = f"{PROBED}; the highest of 3, from 20 GB/s on"
    assert (facts[BANDWIDTH], facts[SOURCE]) == (5e10, found)
    assert facts["chip"] == "EPYC"


def test_probes_of_the_same_machine_in_other_campaigns_count():
    elsewhere = [machine(bandwidth=7e10), machine("1" * 12, bandwidth=9e10)]
    elsewhere.append(machine(bandwidth=8e11, source="config"))
    facts = collect([machine(bandwidth=4e10)], elsewhere)
    found = f"{PROBED}; the highest of 2, from 40 GB/s on"
    assert (facts[BANDWIDTH], facts[SOURCE]) == (7e10, found)


@pytest.mark.parametrize(
    "repeats",
    [
        [machine()],
        [machine(bandwidth=8e11, source="config")] * 3,
        [machine(bandwidth=None, source=None)] * 3,
    ],
)
def test_a_single_probe_and_a_bandwidth_from_another_source_stay(repeats):
    assert collect(repeats) == repeats[0]


def test_repeats_on_two_machines_are_refused():
    with pytest.raises(MeasurementError, match=r"on 2 machines \(EPYC, 0{12} and EPYC, 1{12}\)"):
        collect([machine(), machine("1" * 12)])


def test_machines_of_one_kind_share_a_campaign():
    refuse_other_kinds([machine(), machine("1" * 12, 4e10, memory_bytes=24 * 2**30)])


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
        refuse_other_kinds([machine(), machine("1" * 12, **other)])


def test_the_record_of_several_machines_has_the_first_and_each_and_the_highest_bandwidth():
    blocks = [machine(bandwidth=2e10), machine("1" * 12, bandwidth=4e10), machine(bandwidth=3e10)]
    whole = collect_machines(blocks)
    assert whole == machine(bandwidth=4e10) | {"machines": whole["machines"]}
    assert [one["id"] for one in whole["machines"]] == ["0" * 12, "1" * 12]


def test_records_of_another_kind_are_refused():
    with pytest.raises(MeasurementError, match="chip 'Xeon', not 'EPYC'"):
        collect_machines([machine(), machine("1" * 12, chip="Xeon")])
