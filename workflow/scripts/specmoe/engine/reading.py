"""What the program that reads a target's texts with a draft is given, and what it prints.

See `read_agreement.cpp` for what it says of each token.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Text(NamedTuple):
    """The tokens of a prompt, and of what a target wrote after it."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]

    def line(self) -> str:
        """Return the text as a line of the program's file of texts."""
        return " ".join(map(str, [len(self.prompt), *self.prompt, *self.tokens]))


class Proposal(NamedTuple):
    """What a draft would propose in place of one token of a text.

    `confidence` is the probability of its token among the ten likeliest, which the engine compares
    with p_min. `lead_nats` is how far its token leads the next one, or the text's own where they
    differ.
    """

    token: int
    agrees: bool
    confidence: float
    lead_nats: float


def read_proposals(printed: str) -> list[list[Proposal]]:
    """Return what the program printed: of each text, the proposals in the order of its tokens."""
    texts: defaultdict[int, list[Proposal]] = defaultdict(list)
    for line in printed.splitlines():
        one = json.loads(line)
        texts[one["text"]].append(Proposal(*(one[name] for name in Proposal._fields)))
    return [texts[number] for number in sorted(texts)]


def widest_move(one: Iterable[Sequence[Proposal]], other: Iterable[Sequence[Proposal]]) -> float:
    """Return by how many nats two readings of the same texts in other batches differ at most.

    Where they propose different tokens, that is what both leads have to be overcome by.
    """
    moves = [
        abs(a.lead_nats - b.lead_nats) if a.token == b.token else a.lead_nats + b.lead_nats
        for text, again in zip(one, other, strict=True)
        for a, b in zip(text, again, strict=True)
    ]
    return max(moves, default=0.0)
