"""The job that describes the machine, and tests the engine on it if it is one of several."""

import json
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.backend import Backend
from specmoe.config.gate import Gate
from specmoe.engine.devices import list_devices
from specmoe.engine.measuring_lock import alone
from specmoe.engine.taken_away import Watch, measure_undisturbed
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.plan.hardware import describe
from specmoe.plan.machines import refuse_other_kinds


def describe_host(
    backend: Backend,
    given: Mapping[str, str | float],
    chips: Path,
    out: Path,
    engine: Path | None = None,
    environment: Mapping[str, str] | None = None,
    test: Path | None = None,
    like: Path | None = None,
) -> None:
    """Write the description of this machine.

    `given` is what the user states, `chips` the table of known bandwidths. `engine` lists the
    devices, and `test` is tested here; both are an engine.json. `environment` is that of its
    processes, `like` the description of a machine that must be of the same kind.
    """
    devices = []
    if engine:
        devices = list_devices(engine.parent / "bin/llama-server", environment or {}) or []
    facts = describe(backend, given, chips, _probe_alone, devices)
    if like:
        with named_if_damaged(like):
            refuse_other_kinds([read_record(like), facts])
    if test:
        # It imports numpy.
        from specmoe.engine.self_test import require_tested

        with alone():
            require_tested(test.parent, backend, environment or {})
    replace_text(out, json.dumps(facts, indent=1) + "\n")


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
