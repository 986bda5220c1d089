"""The record of one prompt decoded with drafts; the terminal and the page show it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import TypeAdapter

from specmoe.config.parse import first_fault
from specmoe.errors import SchemaError
from specmoe.files import json_of, read_whole

VERSION: Literal[5] = 5
MARKS = {"accepted": "✓", "rejected": "✗", "own": "→"}
"""The signs of what became of a token, for those who see no colours."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # the server's, for bytes that are no character
_PROMPT_SHOWN = 300  # characters
_SHOWN = {" ": "␣", "\n": "↵", "\t": "⇥"}


def visible(text: str) -> str:
    """Return text with visible white space, and with control characters as their codes."""
    return "".join(
        _SHOWN.get(one, one if one.isprintable() else f"\\u{ord(one):04x}") for one in text
    )


@dataclass(frozen=True)
class Round:
    """A draft, how many of its first tokens are the target's too, and the token after these."""

    drafted: tuple[int, ...]
    accepted: int
    own: int  # what the target writes after the accepted ones


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many elements two lists share, counted from the start."""
    for length, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return length
    return min(len(first), len(second))


def decode(
    text: Sequence[int], gamma: int, propose: Callable[[Sequence[int], int], Sequence[int]]
) -> Iterator[Round]:
    """Yield the rounds by which a greedy target would have written its text.

    `propose` returns so many tokens at most that the draft writes after the given ones. The first
    token comes from reading the prompt and belongs to no round; a draft leaves room for the
    target's own token.
    """
    written = 1
    while written < len(text):
        width = min(gamma, len(text) - written - 1)
        drafted = tuple(propose(text[:written], width)) if width else ()
        accepted = common_prefix(drafted, text[written : written + width])
        yield Round(drafted, accepted, text[written + accepted])
        written += accepted + 1


@dataclass(frozen=True)
class Recording:
    """The text that a target writes greedily, and the rounds by which a draft model gives it."""

    version: Literal[5]
    target: str  # labels
    draft: str
    synthetic: bool
    gamma: int
    prompt_tokens: int
    prompt_text: str
    first: int
    rounds: tuple[Round, ...]
    token_texts: dict[int, str]  # the server's

    @property
    def tokens(self) -> tuple[int, ...]:
        """The text's tokens."""
        given = [(*one.drafted[: one.accepted], one.own) for one in self.rounds]
        return (self.first, *(token for tokens in given for token in tokens))

    @property
    def drafted(self) -> int:
        """How many tokens were drafted."""
        return sum(len(one.drafted) for one in self.rounds)

    @property
    def accepted(self) -> int:
        """How many of them were accepted."""
        return sum(one.accepted for one in self.rounds)

    @property
    def prompt_start(self) -> str:
        """The beginning of the prompt in one line, since prompts may be long."""
        text = self.prompt_text
        end = "…" if len(text) > _PROMPT_SHOWN else ""
        return " ".join(map(visible, text[:_PROMPT_SHOWN].split())) + end

    def words(self, one: Round) -> list[tuple[str, str]]:
        """Return the drafted tokens of a round and the target's own, each with its fate."""
        fates = ["accepted"] * one.accepted + ["rejected"] * (len(one.drafted) - one.accepted)
        words = map(self.word, (*one.drafted, one.own))
        return list(zip((*fates, "own"), words, strict=True))

    def word(self, token: int) -> str:
        """Return a token as readable text that is safe on a terminal; `⟨id⟩` if it is no text."""
        text = self.token_texts[token]
        return visible(text) if text and _REPLACEMENT not in text else f"⟨{token}⟩"

    def to_json(self) -> str:
        """Return the record as JSON, one value a line."""
        return TypeAdapter(type(self)).dump_json(self, indent=1).decode() + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the record in a file; raises SchemaError if it is no record of this version."""
        try:
            return TypeAdapter(cls).validate_python(json_of(read_whole(path)))
        except ValueError as error:
            raise SchemaError(
                f"{path} is no record of a decoding, version {VERSION}: {first_fault(error)};"
                " delete it, and `snakemake demo_trace` makes another"
            ) from error
