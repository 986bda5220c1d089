"""Which passes of which models are timed by themselves, as plain data that a job receives."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from specmoe.config.block import Block, Protocol

# Tokens before every timed pass, as in the middle of a run.
DEPTH = 128


class Outputs(StrEnum):
    """Which tokens of a pass get an output."""

    ALL = "all"  # as a target verifies a draft
    LAST = "last"  # as a draft reads what its target has verified


@dataclass(frozen=True)
class TimedPasses:
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

    def to_json(self) -> str:
        """Return the passes as JSON on one line."""
        return json.dumps(asdict(self))


def list_timed_passes(blocks: Iterable[Block], samples: int, text: str) -> list[TimedPasses]:
    """Return the passes of each target, and of each draft, that speculates in some block.

    Their widths are those of single tokens, of the shortest replays, and of the rounds of every γ.
    """
    speculating = [
        block for block in blocks if block.has_draft and block.protocol == Protocol.PAIRED
    ]
    widths: dict[str, set[int]] = {}
    outputs: dict[str, set[Outputs]] = {}
    for block in speculating:
        of_block = {1, 2, *(side.gamma + 1 for side in block.sides if side.speculates)}
        for model, kind in ((block.target, Outputs.ALL), (block.draft, Outputs.LAST)):
            widths.setdefault(model, set()).update(of_block)
            outputs.setdefault(model, set()).add(kind)
    return [
        TimedPasses(
            model=model,
            widths=tuple(sorted(widths[model])),
            outputs=tuple(sorted(outputs[model])),
            samples=samples,
            text=text,
            depth=DEPTH,
            threads=speculating[0].threads,
            gpu_layers=speculating[0].gpu_layers,
            environment=speculating[0].environment,
        )
        for model in widths
    ]
