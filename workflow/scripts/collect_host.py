"""Collect the descriptions of a campaign's machine, or machines, into one."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from specmoe.command_line import script
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import read_config
from specmoe.errors import SpecmoeError
from specmoe.files import named_if_damaged, read_record
from specmoe.plan.machines import bandwidth_of, collect, collect_machines


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


@script
def main(
    out: Path,
    hosts: Annotated[tuple[Path, ...], "of one machine, before each repeat"] = (),
    machines: Annotated[Path | None, "folder of the machines of all blocks"] = None,
    config: Annotated[Path | None, "the campaign's config.json, with --machines"] = None,
) -> None:
    if machines and config:
        settings = read_config(config)
        blocks = blocks_in_order(settings, gpu=False)  # the same ids with a GPU
        files = [machines / f"{block.block}.json" for block in blocks]
        described = [_read(file) for file in files]
        facts = collect_machines(described)
    else:
        facts = collect([_read(file) for file in hosts], _elsewhere(out))
    out.write_text(json.dumps(facts, indent=1) + "\n")
