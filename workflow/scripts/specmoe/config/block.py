"""A block: what one engine process is asked to do, as plain data that travels to its job."""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Self

NO_DRAFT = "none"
ITSELF = "itself"  # among a suite's drafts: every target drafts for itself
# How a suite is measured, as columns of its rows; rates of two ways are never mixed.
WAY = ["protocol", "engine"]
PASSAGE_PREFIX = "passage-"  # of the ids of prompts that are cut to an exact length


class Protocol(StrEnum):
    """How a run is measured: both sides by llama-server, or by the study's own commands."""

    PAIRED = "paired"
    PUBLISHED = "published"


class Method(StrEnum):
    """How tokens are proposed; the values are llama-server's `--spec-type` but for `none`."""

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
    """All runs of one (suite, target, method, draft, gamma, repeat), in the order they are done.

    There is one run for each prompt.
    """

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
    # Share of the drafted tokens that the engine accepts whatever they are; None: those that match.
    imposed_acceptance: float | None = None
    # Variables of the engine's processes, beside those every engine process has.
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

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the block that `to_json` wrote."""
        data = json.loads(text)
        data["method"] = Method(data["method"])
        data["protocol"] = Protocol(data["protocol"])
        data["prompts"] = tuple(PromptSource(**prompt) for prompt in data["prompts"])
        return cls(**data)
