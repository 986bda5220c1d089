"""Where a campaign's jobs measure; rules know it too, so little is imported here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specmoe.config.backend import Backend
from specmoe.files import named_if_damaged, read_record


@dataclass(frozen=True)
class Workplace:
    """Where a campaign's jobs measure: the engine, the machine, and the limits of their runs."""

    root: Path  # prompt files are relative to this folder
    engine: Path  # engine.json
    host: Path  # the description of the machine, if it exists
    start_limit_s: float
    run_limit_s: float
    workflow_pid: int | None = None  # jobs end when this process ends

    @property
    def binaries(self) -> Path:
        """The folder of the engine's programs."""
        return self.engine.parent / "bin"

    @property
    def backend(self) -> Backend:
        """What the engine computes on."""
        return backend_of(self.engine)


def backend_of(engine: Path) -> Backend:
    """Return what an engine computes on, given its engine.json."""
    with named_if_damaged(engine):
        return Backend(fact(engine, "backend"))


def fact(description: Path, key: str) -> Any:
    """Return what the description of an engine or a model says; measuring needs little of it."""
    with named_if_damaged(description):
        return read_record(description)[key]
