"""Which passes of which models are timed by themselves, as plain data that a job receives."""

from dataclasses import dataclass
from enum import StrEnum

from specmoe.config.parse import JobData

# Tokens before every timed pass, as in the middle of a run.
DEPTH = 128


class Outputs(StrEnum):
    """Which tokens of a pass get an output."""

    ALL = "all"  # as a target verifies a draft
    LAST = "last"  # as a draft reads what its target has verified


@dataclass(frozen=True)
class TimedPasses(JobData):
    """The passes of one model that are timed by themselves in every repeat."""

    model: str
    widths: tuple[int, ...]  # in tokens
    outputs: tuple[Outputs, ...]
    samples: int  # places of the text
    text: str  # relative to the workflow's folder
    depth: int
    threads: int
    gpu_layers: int
    environment: dict[str, str]
    gate: dict[str, float]  # see `config.gate.Gate`
