"""What the demonstration decodes, as plain data that its job receives."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from specmoe.config.block import Block, Side


@dataclass(frozen=True)
class Demonstration:
    """A block of one prompt, and the labels under which readers see its parts."""

    block: Block
    target_label: str
    draft_label: str
    prompt_label: str
    synthetic: bool  # whether one of its models has random weights

    @property
    def side(self) -> Side:
        """How the draft drafts."""
        [side] = self.block.sides
        return side

    def to_json(self) -> str:
        """Return the demonstration as JSON on one line."""
        return TypeAdapter(type(self)).dump_json(self).decode()
