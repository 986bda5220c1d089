"""How large a model's file is, and what a pass over it reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from specmoe.models.card import ModelCard


@dataclass(frozen=True)
class Size:
    """A model's bytes, and those that a pass over it reads."""

    file_bytes: int
    always_read_bytes: float  # by every pass, whatever its tokens
    routed_bytes: float  # of all routed experts, of which a pass reads some; 0 if dense
    experts: int
    experts_used: int
    layers: int
    basis: str  # where the figure comes from, in words

    def pass_bytes(self, width: float) -> float:
        """Return the bytes that one pass over `width` tokens reads.

        Of E experts with k used, b tokens routed evenly visit E (1 - (1 - k/E)^b) in expectation.
        """
        if not self.experts:
            return self.always_read_bytes
        visited = 1 - float((1 - self.experts_used / self.experts) ** width)
        return self.always_read_bytes + self.routed_bytes * visited


def size_of_card(card: ModelCard) -> Size:
    """Return the size of a model whose file has been read."""
    return Size(
        card.size_bytes,
        card.always_read_bytes,
        card.routed_bytes,
        card.experts,
        card.experts_used,
        card.layers,
        "its file",
    )


def sizes_of_cards(cards: Mapping[str, ModelCard]) -> dict[str, Size]:
    """Return the sizes of models whose files have been read, by model id."""
    return {model: size_of_card(card) for model, card in cards.items()}
