"""Fetch and build llama.cpp, and test it on a small model."""

from pathlib import Path

from pydantic import TypeAdapter

from specmoe.command_line import script
from specmoe.config.backend import Backend
from specmoe.config.engines import Engine
from specmoe.engine.build import make_engine


@script
def main(
    id: str, entry: str, backend: Backend, environment: dict[str, str], out: Path, log: Path
) -> None:
    engine = TypeAdapter(Engine).validate_json(entry)
    make_engine(engine, id, backend, out, log, environment)
