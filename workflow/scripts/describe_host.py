"""Describe this machine; test the engine on it where several machines share a campaign."""

import json
from pathlib import Path
from typing import Annotated

from specmoe.command_line import script
from specmoe.config.backend import Backend
from specmoe.config.gate import Gate
from specmoe.engine.devices import list_devices
from specmoe.engine.measuring_lock import alone
from specmoe.engine.taken_away import Watch, measure_undisturbed
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.plan.hardware import describe
from specmoe.plan.machines import refuse_other_kinds


def _probe_alone() -> float:
    # This imports numpy, which a host with a known bandwidth does not need.
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


@script
def main(
    backend: Backend,
    given: Annotated[dict[str, object], "what the user states"],
    chips: Annotated[Path, "table of known bandwidths"],
    out: Path,
    engine: Annotated[Path | None, "engine.json, if the engine is to list devices"] = None,
    environment: Annotated[dict[str, str] | None, "measurement.environment, as JSON"] = None,
    test: Annotated[Path | None, "engine.json, if the engine is to be tested here"] = None,
    like: Annotated[Path | None, "description of a machine of the same kind"] = None,
) -> None:
    devices = []
    if engine:
        server = engine.parent / "bin" / "llama-server"
        devices = list_devices(server, environment or {}) or []
    facts = describe(backend, given, chips, _probe_alone, devices)
    if like:
        with named_if_damaged(like):
            refuse_other_kinds([read_record(like), facts])
    if test:
        # This imports numpy too.
        from specmoe.engine.self_test import require_tested

        with alone():
            require_tested(test.parent, backend, environment or {})
    replace_text(out, json.dumps(facts, indent=1) + "\n")
