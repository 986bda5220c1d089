"""The record of one prompt decoded with drafts; the terminal and the page show it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import TypeAdapter

from specmoe.config.parse import first_fault
from specmoe.config.trace import Demonstration
from specmoe.engine.debug_log import Round, RoundCounts, count
from specmoe.errors import SchemaError
from specmoe.files import json_of, read_whole
from specmoe.measure.common_prefix import common_prefix

VERSION: Literal[4] = 4
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""The server's replacement for bytes that are no character."""

_SHOWN = {" ": "␣", "\n": "↵", "\t": "⇥"}


def visible(text: str) -> str:
    """Return text with visible white space, and with control characters as their codes."""
    return "".join(
        _SHOWN.get(one, one if one.isprintable() else f"\\u{ord(one):04x}") for one in text
    )


@dataclass(frozen=True)
class Provenance:
    """The engine, the machine and the models that made a record."""

    engine: str
    engine_commit: str
    backend: str
    host: str
    target_sha256: str
    draft_sha256: str | None  # of the file that the methods load


@dataclass(frozen=True)
class Recording:
    """A decoding, its rounds, and what the target alone generates after the same prompt.

    Texts are the server's. The text of a token that is only part of a character has the replacement
    character.
    """

    version: Literal[4]
    demonstration: Demonstration
    provenance: Provenance
    command: tuple[str, ...]  # of the server that drafts
    prompt_tokens: int
    prompt_text: str
    tokens: tuple[int, ...]
    text: str
    rounds: tuple[Round, ...]
    plain_tokens: tuple[int, ...]  # generated without a draft
    token_texts: dict[int, str]  # of every token drafted or generated

    @property
    def common_prefix(self) -> int:
        """How many tokens, counted from the start, the target also generates without a draft."""
        return common_prefix(list(self.tokens), list(self.plain_tokens))

    @property
    def counts(self) -> RoundCounts:
        """The totals of the rounds."""
        return count(self.rounds)

    @property
    def tokens_per_pass(self) -> float:
        """The mean number of tokens a pass gave; the first token comes from the prompt's pass."""
        return (len(self.tokens) - 1) / self.counts.passes

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted tokens; None if nothing was drafted."""
        counts = self.counts
        return counts.accepted / counts.drafted if counts.drafted else None

    def word(self, token: int) -> str:
        """Return a token as readable text that is safe on a terminal; `⟨id⟩` if it is no text."""
        text = self.token_texts[token]
        return visible(text) if text and REPLACEMENT not in text else f"⟨{token}⟩"

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
