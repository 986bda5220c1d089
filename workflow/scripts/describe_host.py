"""Describe this machine; test the engine on it where several machines share a campaign."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.config.backend import Backend
from specmoe.config.gate import Gate
from specmoe.engine.devices import list_devices
from specmoe.engine.measuring_lock import alone
from specmoe.engine.taken_away import Watch, measure_undisturbed
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.plan.hardware import describe
from specmoe.plan.machines import refuse_other_kinds


def main() -> None:
    """Parse the command line and describe the machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", required=True, type=Backend)
    parser.add_argument("--given", required=True, type=json.loads, help="what the user states")
    parser.add_argument("--chips", required=True, type=Path, help="table of known bandwidths")
    parser.add_argument("--engine", type=Path, help="engine.json, if the engine is to list devices")
    parser.add_argument(
        "--environment", type=json.loads, default={}, help="measurement.environment, as JSON"
    )
    parser.add_argument("--test", type=Path, help="engine.json, if the engine is to be tested here")
    parser.add_argument("--like", type=Path, help="description of a machine of the same kind")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    devices = []
    if args.engine:
        server = args.engine.parent / "bin" / "llama-server"
        devices = list_devices(server, args.environment) or []
    facts = describe(args.backend, args.given, args.chips, _probe_alone, devices)
    if args.like:
        with named_if_damaged(args.like):
            refuse_other_kinds([read_record(args.like), facts])
    if args.test:
        # This imports numpy too.
        from specmoe.engine.self_test import require_tested

        with alone():
            require_tested(args.test.parent, args.backend, args.environment)
    replace_text(args.out, json.dumps(facts, indent=1) + "\n")


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
            lambda _: None,
        )
    return max(rates)


if __name__ == "__main__":
    errors.run(main)
