"""Compile our own programs against an engine that was built from source."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.engine.programs import build_programs


@script
def main(engine: Path, log: Path) -> None:
    with log.open("w") as output:
        build_programs(engine.parent, output.fileno())
