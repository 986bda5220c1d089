"""The program that reads a target's texts with a draft: its command line, and what it prints.

See `read_agreement.cpp` for what it says of each token.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from specmoe.files import engine_path


class Text(NamedTuple):
    """The tokens of a prompt, and of what a target wrote after it."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]

    def line(self) -> str:
        """Return the text as a line of the program's file of texts."""
        return " ".join(map(str, [len(self.prompt), *self.prompt, *self.tokens]))


class Words(NamedTuple):
    """A prompt as a model got it, and an answer, which the draft's vocabulary makes tokens of."""

    prompt: str
    answer: str

    def line(self) -> str:
        """Return the text as a line of the program's file of texts."""
        return " ".join(["words", *(part.encode().hex() for part in self)])


class Proposal(NamedTuple):
    """What a draft would propose in place of one token of a text.

    `confidence` is the probability of its token among the ten likeliest, which the engine compares
    with p_min; the others are of all tokens. `lead_nats` is how far its token leads the next one,
    or the text's own where they differ.
    """

    token: int
    agrees: bool
    confidence: float
    probability: float
    target_probability: float
    lead_nats: float


def reading_command(
    program: Path, model: Path, texts: Path, *, threads: int, gpu_layers: int, width: int
) -> list[str]:
    """Return the program's command line; `texts` is a file of `Text.line`s."""
    options = {
        "model": engine_path(model),
        "texts": texts,
        "threads": threads,
        "gpu-layers": gpu_layers,
        "width": width,
    }
    words = [(f"--{name}", str(value)) for name, value in options.items()]
    return [str(program), *(word for pair in words for word in pair)]


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
