"""How large a model's file is, and what a forward pass reads of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from specmoe.models.card import ModelCard


@dataclass(frozen=True)
class Size:
    """A model's bytes, and how many of them a forward pass reads."""

    file_bytes: int
    always_read_bytes: float  # by every pass, whatever its tokens
    routed_bytes: float  # of all routed experts, of which a pass reads some; 0 if dense
    experts: int
    experts_used: int
    layers: int
    basis: str  # where the figure comes from, in words
    # Pass width and the distinct experts that such passes were seen to visit in a layer, by width.
    seen_experts: tuple[tuple[float, float], ...] = ()
    mtp_bytes: int | None = None  # that a token drafted by its MTP block reads; None: unknown

    def pass_bytes(self, width: float) -> float:
        """Return the bytes that a forward pass over `width` tokens reads."""
        if not self.experts:
            return self.always_read_bytes
        return self.always_read_bytes + self.routed_bytes * self.visited(width) / self.experts

    def visited(self, width: float) -> float:
        """Return how many distinct experts a forward pass visits in each layer; 0 if dense.

        What was seen, as a share of what even routing visits, is linear between the widths seen and
        constant beyond them. Without it the share is 1.
        """
        if not self.seen_experts:
            return self.evenly_visited(width)
        widths = [seen for seen, _ in self.seen_experts]
        shares = [experts / self.evenly_visited(seen) for seen, experts in self.seen_experts]
        return self.evenly_visited(width) * float(np.interp(width, widths, shares))

    def evenly_visited(self, width: float) -> float:
        """Return how many experts a forward pass visits on average if tokens choose evenly.

        Of E experts with k used, b tokens routed independently visit E (1 - (1 - k/E)^b).
        """
        if not self.experts:
            return 0.0
        return self.experts * (1 - float((1 - self.experts_used / self.experts) ** width))


def split_by_active(total: float, active: float, experts: int, used: int) -> tuple[float, float]:
    """Return what every pass reads of a model, and what is in routed experts; of bytes or weights.

    All = always + routed, and what a token reads, `active`, is always + the share that it visits.
    """
    if not experts or used >= experts:
        return active, 0.0
    routed = (total - active) / (1 - used / experts)
    return total - routed, routed


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
        mtp_bytes=card.mtp_bytes,
    )


def sizes_of_cards(
    cards: Mapping[str, ModelCard], seen_experts: Mapping[str, tuple[tuple[int, float], ...]]
) -> dict[str, Size]:
    """Return the sizes of models whose files have been read, by model id.

    `seen_experts` are the distinct experts by width of the models whose passes were timed.
    """
    return {
        model: replace(size_of_card(card), seen_experts=seen_experts.get(model, ()))
        for model, card in cards.items()
    }
