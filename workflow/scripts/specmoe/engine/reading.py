"""What the program that reads a target's texts with a draft is given, and what it prints.

See `read_agreement.cpp` for what it says of each token.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.errors import MeasurementError


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


def read_answers(path: Path) -> list[Text | Words]:
    """Return the texts of a file that any engine's answers are in, a JSON object a line.

    Either has token ids under `prompt` and `tokens`, or words under `prompt` and `answer`. Raises
    MeasurementError naming the first line that is none, or has no prompt or no answer.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [_text(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    if not texts:
        raise MeasurementError(f"{path} has no answers")
    return texts


def _text(line: str, place: str) -> Text | Words:
    try:
        answer = json.loads(line)
    except json.JSONDecodeError as error:
        raise MeasurementError(f"{place}: no JSON: {error}") from error
    if isinstance(answer, dict):
        prompt, words = answer.get("prompt"), answer.get("answer")
        if isinstance(prompt, str) and isinstance(words, str) and prompt and words:
            return Words(prompt, words)
    return Text(_ids(answer, "prompt", place), _ids(answer, "tokens", place))


def _ids(answer: Any, key: str, place: str) -> tuple[int, ...]:
    ids = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(ids, list) or not ids or not all(type(one) is int for one in ids):
        raise MeasurementError(
            f"{place}: {key!r} is not a list of token ids, nor are 'prompt' and 'answer' texts"
        )
    return tuple(ids)


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
