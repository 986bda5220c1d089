"""Whether an engine was tested on this machine: built for another processor, it may crash here."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.backend import Backend
from specmoe.engine.machine_id import host_id, processor_name
from specmoe.engine.self_test import self_test
from specmoe.errors import EngineError

_FOLDER = "tested"


def mark_tested(engine: Path) -> None:
    """Note in an engine's folder that it passed its self-test on this machine."""
    _mark(engine).parent.mkdir(exist_ok=True)
    _mark(engine).touch()


def forget_tests(engine: Path) -> None:
    """Remove the notes of an engine that is built again."""
    shutil.rmtree(engine / _FOLDER, ignore_errors=True)


def require_tested(engine: Path, backend: Backend, environment: Mapping[str, str]) -> None:
    """Test an engine on this machine, unless it was. Raises EngineError if it does not run here.

    `engine` is its folder, `environment` is `measurement.environment`.
    """
    if _mark(engine).exists():
        return
    _mark(engine).parent.mkdir(exist_ok=True)
    try:
        self_test(engine / "bin", backend, _mark(engine).with_suffix(".log"), environment)
    except EngineError as error:
        raise EngineError(
            f"engine {engine.name} was built on another machine and does not run on this one"
            f" ({processor_name()}, {host_id()}); measure with campaign.engine: portable, which"
            f" fits every processor, or build the engine here in a folder of its own: {error}"
        ) from error
    mark_tested(engine)


def _mark(engine: Path) -> Path:
    return engine / _FOLDER / f"{host_id()}.ok"
