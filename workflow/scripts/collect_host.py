"""Collect the descriptions of a campaign's machine, or machines, into one."""

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from specmoe import errors
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import Hosts, read_config
from specmoe.files import named_if_damaged, read_record
from specmoe.measure.again import second_of
from specmoe.plan.machines import bandwidth_of, collect, collect_machines, refuse_other_kinds


def main() -> None:
    """Parse the command line and collect the descriptions."""
    parser = argparse.ArgumentParser(description=__doc__)
    described = parser.add_mutually_exclusive_group(required=True)
    described.add_argument("--hosts", type=Path, nargs="+", help="of one machine, r<repeat>.json")
    described.add_argument("--machines", type=Path, help="folder of those of each block")
    parser.add_argument("--config", type=Path, help="the campaign's config.json, with --machines")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    if args.machines:
        config = read_config(args.config)
        blocks = blocks_in_order(config, gpu=False)  # the same ids with a GPU
        files = [args.machines / f"{block.block}.json" for block in blocks]
        # Of blocks that were measured a second time, perhaps elsewhere.
        second = [second_of(args.machines / "again", block.block) for block in blocks]
        machines = [_read(file) for file in [*files, *filter(Path.exists, second)]]
        if config.campaign.hosts == Hosts.SAME:
            refuse_other_kinds(machines)
        facts = collect_machines(machines)
    else:
        facts = collect([_read(file) for file in args.hosts], _elsewhere(args.out))
    args.out.write_text(json.dumps(facts, indent=1) + "\n")


def _elsewhere(out: Path) -> Iterator[dict[str, Any]]:
    """Give the descriptions before each repeat of the other campaigns, as far as readable."""
    for file in out.parent.parent.glob("*/hosts/r*.json"):
        if file.parents[1] != out.parent:
            with suppress(errors.SpecmoeError):
                yield _read(file)


def _read(file: Path) -> dict[str, Any]:
    with named_if_damaged(file):
        facts: dict[str, Any] = read_record(file)
        bandwidth_of(facts)
    return facts


if __name__ == "__main__":
    errors.run(main)
