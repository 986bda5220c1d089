"""The record of one prompt decoded with a draft: written by a job, read by terminal and page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import TypeAdapter, ValidationError

from specmoe.config.trace import Demonstration
from specmoe.engine.debug_log import Counts, Round, count
from specmoe.errors import SchemaError
from specmoe.measure.common_prefix import common_prefix

VERSION: Literal[1] = 1
UNKNOWN = "?"
"""What stands for a token that the log does not tell."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What the server has in place of bytes that are no character."""

_SHOWN = {" ": "␣", "\n": "↵", "\t": "⇥"}


def visible(text: str) -> str:
    """Return text with its white space to be seen, and control characters by their codes."""
    return "".join(
        _SHOWN.get(one, one if one.isprintable() else f"\\u{ord(one):04x}") for one in text
    )


@dataclass(frozen=True)
class Provenance:
    """What made a record."""

    engine: str
    engine_commit: str
    backend: str
    host: str
    target_sha256: str
    draft_sha256: str


@dataclass(frozen=True)
class Recording:
    """What was decoded, by which rounds, and what the target alone makes of the same prompt.

    Texts are what the server makes of token ids; a token that is no text by itself has the
    replacement character in its own.
    """

    version: Literal[1]
    demonstration: Demonstration
    provenance: Provenance
    command: tuple[str, ...]  # of the server with the draft
    prompt_tokens: int
    prompt_text: str
    tokens: tuple[int, ...]
    text: str
    rounds: tuple[Round, ...]
    plain_tokens: tuple[int, ...]  # generated without a draft
    token_texts: dict[int, str]  # of every token drafted or generated

    @property
    def common_prefix(self) -> int:
        """How many tokens from the start are those that the target gives without a draft."""
        return common_prefix(list(self.tokens), list(self.plain_tokens))

    @property
    def counts(self) -> Counts:
        """What the rounds come to."""
        return count(self.rounds)

    @property
    def tokens_per_pass(self) -> float:
        """How many tokens a pass gave on average; the first one comes from the prompt's pass."""
        return (len(self.tokens) - 1) / self.counts.passes

    @property
    def acceptance_rate(self) -> float:
        """Accepted of the drafted tokens."""
        return self.counts.accepted / self.counts.drafted

    def word(self, token: int | None) -> str:
        """Return a token as people can read it, harmless to a terminal; `⟨id⟩` if it is no text."""
        if token is None:
            return UNKNOWN
        text = self.token_texts[token]
        return visible(text) if text and REPLACEMENT not in text else f"⟨{token}⟩"

    def to_json(self) -> str:
        """Return the record as JSON, a value a line."""
        return TypeAdapter(type(self)).dump_json(self, indent=1).decode() + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return a record; raises SchemaError if the file holds none of this version."""
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(map(str, fault["loc"])) or "top level"
            raise SchemaError(
                f"{path} is no record of a decoding, version {VERSION}: {place}: {fault['msg']};"
                " without it `snakemake demo_trace` makes another"
            ) from error
