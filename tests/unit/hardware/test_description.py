"""The description of the machine, its bandwidth, and machines that share a campaign."""

import json
import platform

import psutil
import pytest
import yaml

from specmoe.config.engines import Backend
from specmoe.errors import MeasurementError
from specmoe.hardware import description as module
from specmoe.hardware.description import PROBED, collect, write_description
from specmoe.hardware.machine import Device

from ...conftest import ROOT

BANDWIDTH, SOURCE = "memory_bandwidth_bytes_per_second", "memory_bandwidth_source"


def described(backend=Backend.CPU, given=None, probe=pytest.fail):
    return module.machine_facts(backend, given or {}, probe)


@pytest.fixture
def gpus(monkeypatch):
    """Let NVIDIA's driver name GPUs, with their memory."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    return lambda *found: monkeypatch.setattr(module, "nvidia_gpus", lambda: list(found))


def test_what_the_user_states_overrides_what_is_found_and_is_listed():
    given = {
        "chip": "Apple M2 Ultra",
        "memory_gb": 192,
        "memory_bandwidth_gb_s": "800",
        "gpu": "Apple M2 Ultra, 76-core GPU",
        "gpu_memory_gb": 1.5,
    }
    facts = described(given=given)
    assert facts["chip"] == "Apple M2 Ultra"
    assert facts["memory_bytes"] == 192 * 2**30
    assert facts["gpu"] == "Apple M2 Ultra, 76-core GPU"
    assert facts["gpu_memory_bytes"] == 3 * 2**29
    assert (facts[BANDWIDTH], facts[SOURCE]) == (800e9, "config")
    assert facts["given"] == "chip, gpu, gpu_memory_gb, memory_bandwidth_gb_s, memory_gb"


@pytest.mark.parametrize(
    ("chip", "ioreg", "gpu", "bandwidth"),
    [
        ("Apple M3 Max", '{ "gpu-core-count" = 40 }', "Apple M3 Max, 40-core GPU", 400e9),
        ("Apple M1", "", "Apple M1", 68.3e9),
        ("Intel(R) Core(TM) i9-9880H CPU @ 2.30GHz", "", None, 5e10),
    ],
)
def test_a_mac_is_described_from_its_tools(monkeypatch, chip, ioreg, gpu, bandwidth):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("15.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(module, "machine_id", lambda: "0" * 12)
    monkeypatch.setattr(module, "processor_name", lambda: chip)
    monkeypatch.setattr(module, "output_of", lambda *_: ioreg)
    for backend in (Backend.METAL, Backend.CPU):
        facts = described(backend, probe=lambda: 5e10)
        assert facts["system"] == "macOS 15.5"
        assert (facts["gpu"], facts["gpu_memory_bytes"]) == (gpu, None)
        assert facts[BANDWIDTH] == bandwidth


RTX, SHARED = ("NVIDIA GeForce RTX 4090", 24564 * 2**20), ("NVIDIA GB10", None)


@pytest.mark.parametrize(
    ("found", "backend", "chip", "bandwidth"),
    [
        ([], Backend.CPU, "Apple M2 Ultra", 800e9),
        ([], Backend.CPU, "Apple M2 Extreme", 5e10),  # unknown, so it is probed
        ([RTX], Backend.CUDA, "EPYC", 1008e9),
        ([RTX], Backend.CPU, "EPYC", 5e10),
        # None is taken for one near it, nor of several memories under one name.
        ([("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 2**33)], Backend.CUDA, "EPYC", None),
        ([("NVIDIA RTX 4000", 2**33)], Backend.CUDA, "EPYC", None),
        ([("NVIDIA GeForce RTX 3080", 2**33)], Backend.CUDA, "EPYC", None),
        # An unknown GPU does not have the bandwidth of the CPU.
        ([("RTX 4090 Laptop", 2**34)], Backend.CUDA, "Apple M2 Ultra", None),
        ([], Backend.CUDA, "Apple M2 Ultra", None),
        # A GPU that shares the memory gives the bandwidth of the CPU too.
        ([SHARED], Backend.CUDA, "EPYC", 273e9),
        ([SHARED], Backend.CPU, "EPYC", 273e9),
        # A board is found by its model where its GPU has no specific name.
        ([("Orin", None)], Backend.CUDA, "NVIDIA Jetson AGX Orin Developer Kit", 204.8e9),
    ],
)
def test_the_bandwidth_is_that_of_the_memory_that_the_backend_reads(
    gpus, found, backend, chip, bandwidth
):
    gpus(*found)
    facts = described(backend, {"chip": chip}, lambda: 5e10)
    assert facts["gpu"] == (found[0][0] if found else None)
    assert facts[BANDWIDTH] == bandwidth
    source = str(facts[SOURCE])
    assert source.partition(":")[0] == {5e10: "probe", None: "None"}.get(bandwidth, "table")


RADEON = Device("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 24 * 2**30)


def test_backends_without_a_tool_of_their_own_take_the_gpu_from_the_engines_list(gpus):
    gpus(RTX)
    facts = module.machine_facts(Backend.VULKAN, {}, pytest.fail, [RADEON, RADEON])
    assert facts["gpu"] == RADEON.description
    assert (facts["gpu_count"], facts["gpu_memory_bytes"]) == (2, 48 * 2**30)
    assert facts["devices"] == f"Vulkan0: {RADEON.description}, Vulkan0: {RADEON.description}"
    assert facts[BANDWIDTH] == 960e9
    # CUDA's is named as the table of chips names it.
    cuda = module.machine_facts(Backend.CUDA, {}, pytest.fail, [Device("CUDA0", "RTX", 1)])
    assert cuda["gpu"] == "NVIDIA GeForce RTX 4090"


def test_every_known_chip_is_named_once_and_has_a_figure_and_a_source(root):
    table = yaml.safe_load((root / "resources/hardware/memory_bandwidth.yaml").read_text())
    names = [name for entry in table for name in entry["names"]]
    assert len(names) == len(set(names))
    for entry in table:
        assert set(entry) == {"names", "gb_per_second", "source"}
        assert 10 < entry["gb_per_second"] < 10_000


def test_this_machine_reads_faster_than_a_disk_and_slower_than_its_caches(monkeypatch):
    monkeypatch.setattr(module, "PASS_S", 0.02)
    monkeypatch.setattr(module, "MOST_BYTES", 2**28)
    assert 1e8 < module.probe() < 1e13


def test_the_pass_with_the_highest_total_of_all_threads_counts_and_memory_that_is_free(monkeypatch):
    parts = []
    memory = psutil.virtual_memory()._replace(available=8 * 2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(module, "physical_cores", lambda: 4)
    monkeypatch.setattr(
        module, "_read_in_step", lambda part, _: parts.append(part.nbytes) or [1.0, 5.0, 2.0]
    )
    assert module.probe() == 20.0
    assert parts == [2**18] * 4


# As the shipped ones are, with another processor and memory.
SHIPPED = json.loads((ROOT / "resources/campaigns/demo/machine.json").read_text())
SHIPPED |= {"chip": "EPYC", "memory_bytes": 24 * 2**30 + 5_000_000}


def machine(name="0" * 12, bandwidth=5e10, source=PROBED, **facts):
    return SHIPPED | {"id": name, BANDWIDTH: bandwidth, SOURCE: source} | facts


def test_the_fastest_probe_of_all_repeats_counts():
    facts = collect([machine(bandwidth=rate) for rate in (2e10, 5e10, 3e10)], shared=False)
    found = f"{PROBED}; the highest of 3, from 20 GB/s on"
    assert (facts[BANDWIDTH], facts[SOURCE]) == (5e10, found)
    assert facts["chip"] == "EPYC"
    # A single probe and a bandwidth from another source stay.
    for source in (PROBED, "config", None):
        assert collect([machine(source=source)], shared=False)[SOURCE] == source


def test_each_machine_that_shares_a_campaign_is_listed_once():
    blocks = [machine(), machine("1" * 12), machine()]
    assert "machines" not in collect(blocks, shared=False)
    whole = collect(blocks, shared=True)
    assert [one["id"] for one in whole["machines"]] == ["0" * 12, "1" * 12]
    assert (whole["id"], whole[BANDWIDTH]) == ("0" * 12, 5e10)


def test_the_first_machine_of_a_campaign_is_what_others_are_compared_with(tmp_path):
    def describe(name, given=None, **facts):
        out, like = tmp_path / f"{name}.json", tmp_path / "machines/r0.json"
        write_description(machine(name, **facts), given or {}, out, like)
        return json.loads(out.read_text()), json.loads(like.read_text())

    one, first = describe("1")
    assert one == first
    assert describe("2", memory_bytes=24 * 2**30) == (machine("2", memory_bytes=24 * 2**30), first)
    with pytest.raises(MeasurementError, match="chip: EPYC before, Xeon now"):
        describe("3", chip="Xeon")
    describe("3", {"chip": "Xeon"}, chip="Xeon")  # the user says so now
