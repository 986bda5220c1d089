"""A block: what one engine process measures, as plain data that its job receives."""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum

NO_DRAFT = "none"
ITSELF = "itself"  # among a suite's drafts: every target drafts for itself
# How a suite is measured, as columns of its rows. Rates of two ways are not comparable.
WAY = ["protocol", "engine"]
PASSAGE_PREFIX = "passage-"  # of the ids of prompts that are cut to an exact length


class Protocol(StrEnum):
    """How a run is measured: by llama-server (both sides), or by the study's own commands."""

    PAIRED = "paired"
    PUBLISHED = "published"


class Method(StrEnum):
    """How tokens are proposed; the values are llama-server's `--spec-type`, except `none`."""

    NONE = "none"
    DRAFT = "draft-simple"


@dataclass(frozen=True)
class PromptSource:
    """A prompt's id and file, and how many of its first tokens are sent (None: all).

    Protocol `published` counts words instead of tokens, as the study does.
    """

    prompt: str
    file: str
    length: int | None = None


@dataclass(frozen=True)
class Block:
    """All runs of one (suite, target, method, draft, gamma, repeat), one a prompt, in order."""

    block: str
    suite: str
    target: str
    method: Method
    draft: str
    gamma: int
    repeat: int
    prompts: tuple[PromptSource, ...]
    n_predict: int
    temperature: float
    seed: int
    warmups: int
    context: int
    threads: int
    gpu_layers: int
    protocol: Protocol = Protocol.PAIRED
    # Share of the drafted tokens that the engine accepts unseen; None: it accepts those that match.
    imposed_acceptance: float | None = None
    # Variables of the engine's processes, in addition to those that every engine process has.
    environment: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def has_draft(self) -> bool:
        """Whether the engine loads a second model."""
        return self.draft != NO_DRAFT

    def run_id(self, prompt: str) -> str:
        """Return the id, unique in the campaign, of this block's run of a prompt."""
        return f"{self.block}/{prompt}"

    def to_json(self) -> str:
        """Return the block as JSON on one line."""
        return json.dumps(asdict(self))
