"""What the demonstration decodes, as plain data that travels to its job."""

from dataclasses import dataclass
from typing import Self

from pydantic import TypeAdapter

from specmoe.config.block import Block


@dataclass(frozen=True)
class Demonstration:
    """A block of one prompt, and the reader's words for what is in it."""

    block: Block
    target_label: str
    draft_label: str
    prompt_label: str
    synthetic: bool  # whether a model of it was made with random weights

    def to_json(self) -> str:
        """Return it as JSON on one line."""
        return TypeAdapter(type(self)).dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote."""
        return TypeAdapter(cls).validate_json(text)
