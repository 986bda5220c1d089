"""The machines of a campaign: what makes them one kind, and their descriptions as one record.

A description is what `hardware.describe` returns. `host.json` describes the campaign's machine; of
several machines it has the first one, and each of them in `machines`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specmoe.config.backend import Backend
from specmoe.config.measurement import Gate
from specmoe.engine.devices import list_devices
from specmoe.engine.measuring_lock import alone
from specmoe.engine.taken_away import Watch, measure_undisturbed
from specmoe.errors import MeasurementError
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.plan.hardware import GB, PROBED, describe, stated

# Kernels of one kind of machine reserve a few MB more or less.
_IN_GIB = ("memory_bytes", "gpu_memory_bytes")
_KIND = ("chip", "architecture", "physical_cores", "logical_cores", *_IN_GIB, "gpu", "gpu_count")
_BANDWIDTH, _SOURCE = "memory_bandwidth_bytes_per_second", "memory_bandwidth_source"


def bandwidth_of(machine: Mapping[str, Any]) -> float | None:
    """Return the bandwidth of a description; raises ValueError for one that no machine has."""
    rate = machine[_BANDWIDTH]
    if rate is not None and not rate > 0:
        raise ValueError(f"{_BANDWIDTH} is {rate}")
    return rate and float(rate)


def kind_of(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what machines of one kind share: processor, cores, memory (in GiB) and GPU."""
    kind = {name: machine[name] for name in _KIND}
    return kind | {name: kind[name] and round(kind[name] / 2**30) for name in _IN_GIB}


def refuse_another_kind(first: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    """Raise MeasurementError if a machine is not of the first one's kind, naming what differs."""
    due, kind = kind_of(first), kind_of(machine)
    differing = ", ".join(
        f"{name.removesuffix('_bytes')} {kind[name]!r}, not {due[name]!r}"
        for name in _KIND
        if kind[name] != due[name]
    )
    if differing:
        raise MeasurementError(
            f"machine {machine['id']} is of another kind than the campaign's first one,"
            f" {first['id']}: {differing}; give its runs a campaign.name of their own"
        )


def collect(machines: Sequence[Mapping[str, Any]], *, shared: bool) -> dict[str, Any]:
    """Return the first description of a campaign's machine, with the highest bandwidth of all.

    Other programs that use the memory during a probe lower its result and nothing raises it (see
    `bandwidth_probe.probe`), so the highest is nearest to the bound of the runs. A shared campaign
    has a description for each block; of each machine one is in `machines`, sorted by id. Raises
    MeasurementError if a machine is of another kind, or if a campaign that is not shared has two.
    """
    whole = dict(machines[0])
    by_id = {str(one["id"]): one for one in machines}
    if shared:
        for one in by_id.values():
            refuse_another_kind(whole, one)
        whole["machines"] = [by_id[name] for name in sorted(by_id)]
    elif len(by_id) > 1:
        named = " and ".join(f"{one['chip']}, {name}" for name, one in by_id.items())
        raise MeasurementError(
            f"the repeats of this campaign were described on {len(by_id)} machines ({named}):"
            " give the runs of another machine a campaign.name of their own"
        )
    rates = [float(one[_BANDWIDTH]) for one in machines if one[_SOURCE] == PROBED]
    if len(rates) > 1:
        spread = f"the highest of {len(rates)}, from {min(rates) / GB:.0f} GB/s on"
        whole |= {_BANDWIDTH: max(rates), _SOURCE: f"{PROBED}; {spread}"}
    return whole


def collect_host(files: Iterable[Path], out: Path, *, shared: bool) -> None:
    """Write the description of a campaign's machine, or of all that share it, from files."""
    found = []
    for file in files:
        with named_if_damaged(file):
            found.append(read_record(file))
            bandwidth_of(found[-1])
    replace_text(out, json.dumps(collect(found, shared=shared), indent=1) + "\n")


def describe_host(
    backend: Backend,
    given: Mapping[str, str | float],
    environment: Mapping[str, str],
    chips: Path,
    out: Path,
    engine: Path | None = None,
    like: Path | None = None,
) -> None:
    """Write the description of this machine.

    `given` is what the user states, `chips` the table of known bandwidths, `engine` the engine.json
    of what lists a GPU's devices, and `environment` that of its processes. In a campaign that
    machines share the engine is tested here, and `like` is the description of the first machine:
    the first to come writes it, the others must be of its kind. It is no input of jobs: snakemake
    9.27 would not look at what is missing behind an ancient input that is made anew.
    """
    devices = []
    if engine and backend != Backend.CPU:
        devices = list_devices(engine.parent / "bin/llama-server", environment) or []
    facts = describe(backend, given, chips, _probe_alone, devices)
    written = json.dumps(facts, indent=1) + "\n"
    if like and like.exists():
        with named_if_damaged(like):
            # What the user states now is no difference.
            refuse_another_kind(read_record(like) | stated(given), facts)
    elif like:
        replace_text(like, written)
    if like and engine:
        # It imports numpy.
        from specmoe.engine.self_test import require_tested

        with alone():
            require_tested(engine.parent, backend, environment)
    replace_text(out, written)


def _probe_alone() -> float:
    # This imports numpy too, which a host with a known bandwidth does not need.
    from specmoe.plan.bandwidth_probe import probe

    with alone():
        # A probe beside other programs is low, so it is repeated as runs are. Nothing raises it, so
        # the highest counts and not the last.
        rates: list[float] = []
        measure_undisturbed(
            lambda: rates.append(probe()),
            lambda: Watch(None, 1, Backend.CPU),
            Gate(),
            lambda _, __: None,
        )
    return max(rates)
