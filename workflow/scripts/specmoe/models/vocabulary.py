"""A byte-level BPE vocabulary of any size, for models that were never trained."""

from dataclasses import dataclass

import gguf

from specmoe.errors import ModelError

END_OF_TEXT = "<|endoftext|>"

# Whole words and word parts. Each becomes a chain of merges, so that usual prompts (English, code)
# have fewer tokens than bytes. Other text is tokenized byte by byte.
_FRAGMENTS = (
    "Ġthe Ġof Ġand Ġin Ġto Ġis Ġa Ġthat Ġfor Ġit Ġas Ġwas Ġwith Ġbe Ġby Ġon Ġnot Ġhe Ġthis Ġare "
    "Ġor Ġfrom Ġhave Ġan Ġwhich Ġone Ġwe Ġcan Ġreturn Ġself ing ion ed er es en al re in on at "
    "th he le ly or an ar ic de def class import print ĠĠĠĠ == ():"
)


@dataclass(frozen=True)
class Vocabulary:
    """A byte-level BPE vocabulary as GGUF stores it."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    end_of_text: int  # token id

    @property
    def types(self) -> list[int]:
        """GGUF's token type of every token: normal, control or unused."""
        normal, unused = int(gguf.TokenType.NORMAL), int(gguf.TokenType.UNUSED)
        types = [normal] * self.end_of_text + [unused] * len(self.padding)
        types[self.end_of_text] = int(gguf.TokenType.CONTROL)
        return types

    @property
    def padding(self) -> tuple[int, ...]:
        """The ids that no text is encoded with: end of text and all that follow it."""
        return tuple(range(self.end_of_text, len(self.tokens)))

    @property
    def unprintable(self) -> tuple[int, ...]:
        """The ids that no model should generate: end of text, and parts of UTF-8 characters."""
        writable = {chr(code) for code in range(0x21, 0x7F)} | {"Ġ", "Ċ"}
        encoded = enumerate(self.tokens[: self.end_of_text])
        return tuple(i for i, text in encoded if not writable.issuperset(text)) + self.padding


def byte_level_vocabulary(size: int) -> Vocabulary:
    """Return a vocabulary of `size` tokens that encodes any byte; unused tokens pad its end."""
    tokens = byte_symbols()
    merges = []
    for fragment in _FRAGMENTS.split():
        for end in range(2, len(fragment) + 1):
            if fragment[:end] not in tokens:
                tokens.append(fragment[:end])
                merges.append(f"{fragment[: end - 1]} {fragment[end - 1]}")
    end_of_text = len(tokens)
    padding = size - end_of_text - 1
    if padding < 0:
        raise ModelError(f"synthetic model: vocabulary must be at least {end_of_text + 1}")
    tokens += [END_OF_TEXT, *(f"<|unused_{i}|>" for i in range(padding))]
    return Vocabulary(tuple(tokens), tuple(merges), end_of_text)


def byte_symbols() -> list[str]:
    """Return GPT-2's printable symbol for each byte, in the order of its vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
