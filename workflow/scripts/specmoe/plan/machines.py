"""The machines of a campaign: what makes them one kind, and their descriptions as one record.

A description is what `hardware.describe` returns. `host.json` describes the campaign's machine; of
several machines it has the first one, and each of them in `machines`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from specmoe.errors import MeasurementError, SpecmoeError
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.plan.chips import GB
from specmoe.plan.hardware import PROBED, Facts

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


def refuse_other_kinds(machines: Sequence[Mapping[str, Any]]) -> None:
    """Raise MeasurementError if a machine is not of the first one's kind, naming what differs."""
    first = kind_of(machines[0])
    for machine in machines[1:]:
        kind = kind_of(machine)
        differing = [name for name in _KIND if kind[name] != first[name]]
        if differing:
            named = ", ".join(
                f"{name.removesuffix('_bytes')} {kind[name]!r}, not {first[name]!r}"
                for name in differing
            )
            raise MeasurementError(
                f"machine {machine['id']} is of another kind than the campaign's first one,"
                f" {machines[0]['id']}: {named}; give its runs a campaign.name of their own"
            )


def collect(descriptions: Sequence[Facts], elsewhere: Iterable[Facts] = ()) -> Facts:
    """Return a machine's first description, with the highest bandwidth of all probes.

    Other programs that use the memory during a probe lower its result and nothing raises it (see
    `bandwidth_probe.probe`), so the highest is nearest to the bound of the runs. `elsewhere` are
    descriptions before repeats of other campaigns: their probes of this machine count too. Raises
    MeasurementError if the descriptions are of more than one machine.
    """
    first = descriptions[0]
    machines = {str(one["id"]): str(one["chip"]) for one in descriptions}
    if len(machines) > 1:
        named = " and ".join(f"{chip}, {machine}" for machine, chip in machines.items())
        raise MeasurementError(
            f"the repeats of this campaign were described on {len(machines)} machines ({named}):"
            " give the runs of another machine a campaign.name of their own"
        )
    if first[_SOURCE] != PROBED:
        return first
    probed = [one for one in elsewhere if one.get("id") == first["id"]]
    rates = [
        float(one[_BANDWIDTH] or 0) for one in (*descriptions, *probed) if one[_SOURCE] == PROBED
    ]
    if len(rates) == 1:
        return first
    spread = f"the highest of {len(rates)}, from {min(rates) / GB:.0f} GB/s on"
    return first | {_BANDWIDTH: max(rates), _SOURCE: f"{PROBED}; {spread}"}


def collect_machines(descriptions: Sequence[Facts]) -> dict[str, Any]:
    """Return the first of machines of one kind, and under `machines` each of them, sorted by id.

    Every block has a description. The highest bandwidth is all machines'. Raises MeasurementError
    if a machine is of another kind.
    """
    refuse_other_kinds(descriptions)
    by_id = {str(one["id"]): one for one in reversed(descriptions)}
    fastest = max(descriptions, key=lambda one: float(one[_BANDWIDTH] or 0))
    of_all = {name: fastest[name] for name in (_BANDWIDTH, _SOURCE)}
    return descriptions[0] | of_all | {"machines": [by_id[name] for name in sorted(by_id)]}


def collect_files(files: Iterable[Path], out: Path, *, shared: bool) -> None:
    """Write the description of a campaign's machine, or of all that share it, from files.

    A machine's description is collected with those before repeats of other campaigns.
    """
    described = [_read(file) for file in files]
    facts = collect_machines(described) if shared else collect(described, _elsewhere(out))
    replace_text(out, json.dumps(facts, indent=1) + "\n")


def _elsewhere(out: Path) -> Iterator[dict[str, Any]]:
    """Give the descriptions before each repeat of the other campaigns, as far as readable."""
    for file in out.parent.parent.glob("*/hosts/r*.json"):
        if file.parents[1] != out.parent:
            with suppress(SpecmoeError):
                yield _read(file)


def _read(file: Path) -> dict[str, Any]:
    with named_if_damaged(file):
        facts: dict[str, Any] = read_record(file)
        bandwidth_of(facts)
    return facts
