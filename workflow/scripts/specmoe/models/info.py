"""The info of a model, and the bytes that a forward pass reads of it.

Model info is in `<model>.json`; `models.json` has that of a whole campaign.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, model_validator
from pydantic import NonNegativeInt as Count
from pydantic.dataclasses import dataclass
from pydantic_core import to_json

from specmoe.config.base import first_error, resource
from specmoe.errors import ModelError, one_line
from specmoe.files import json_of

_IF_KNOWN = Field(exclude_if=lambda text: not text)


@dataclasses.dataclass(frozen=True)
class Thinking:
    """How a model's chat template has it think, and the tokens around what it thinks."""

    heeded: bool  # whether the template writes something else if it is told not to think
    opens: tuple[bool, bool]  # whether its prompt ends in thinking: told not to, and told to
    begin: int | None = None  # ids; null where a marker is not one token of the vocabulary
    end: int | None = None

    def thought(self, tokens: Sequence[int], *, opened: bool) -> int:
        """Return how many tokens of a response are thinking: all, if it never ends."""
        ends = [place for place, token in enumerate(tokens, 1) if token == self.end]
        return ends[-1] if ends else len(tokens) * (opened or self.begin in tokens)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ModelInfo:
    """A model as far as a measurement depends on it; all parts of a split one.

    Null is what only the file tells, see `plan.estimate.info_of_entry`.
    """

    size_bytes: Count
    sha256: str | None  # of a split model, see `files.digest_of_parts`
    architecture: str
    type: str | None  # as llama-quantize names it, e.g. Q4_K_M
    parameters_total: Count
    parameters_active: Count  # multiplied for one token; see `gguf.of_token`
    tensor_count: Count | None
    tensor_types: dict[str, Count] | None  # GGML type name -> number of tensors
    always_read_bytes: Count  # weights that every pass reads, whatever its tokens
    routed_bytes: Count  # weights of all routed experts, of which a pass reads some; 0 if dense
    vocabulary_size: Count
    vocabulary_sha256: str | None  # of all tokens in order; models with the same one share them
    context_length: Count | None  # tokens
    # Without multi-token-prediction blocks. More would be damage, and every estimate wrong.
    layers: Annotated[int, Field(ge=0, le=10_000)]
    experts: Count  # routed experts of a layer; 0 if dense
    experts_used: Count  # of those, visited by one token
    mtp_blocks: Count = 0  # blocks that predict further tokens
    mtp_bytes: Count | None = None  # that such a block reads for a token, with the output matrix
    chat_template: bool = False  # whether the file has one
    # Of a template that knows of thinking.
    thinking: Annotated[Thinking | None, Field(exclude_if=lambda value: value is None)] = None
    # Tokens of the window in which some layers see others; 0 without one.
    sliding_window: Annotated[Count, _IF_KNOWN] = 0
    origin: Annotated[str, _IF_KNOWN] = ""  # of a package's or the hub's, or made from one
    licence: Annotated[str, _IF_KNOWN] = ""

    @property
    def replays(self) -> bool:
        """Whether the engine decodes a round's accepted tokens again, after a rejection."""
        return self.architecture in resource("engine_rules")["recurrent"]

    @property
    def restored(self) -> bool:
        """Whether the engine restores its state after a rejection, at least by some methods."""
        return self.replays or self.sliding_window > 0

    @model_validator(mode="after")
    def _uses_what_it_has(self) -> Self:
        if self.experts_used > self.experts:
            raise ValueError(f"{self.experts_used} experts used of {self.experts}")
        return self


_T = TypeVar("_T")


def save_info(info: ModelInfo | Mapping[str, ModelInfo], path: Path) -> None:
    """Write one model's info, or the infos of a campaign."""
    path.write_bytes(to_json(info, indent=1) + b"\n")


def _load(adapter: TypeAdapter[_T], path: Path) -> _T:
    try:
        return adapter.validate_python(json_of(path.read_bytes()))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        reason = one_line(first_error(error))
        raise ModelError(f"{path}: no model info ({reason}); make it again") from error


load_info = partial(_load, TypeAdapter(ModelInfo))
load_infos = partial(_load, TypeAdapter(dict[str, ModelInfo]))
"""Read a model's info, or a campaign's by id; ModelError for what is missing or no info."""


@dataclasses.dataclass(frozen=True)
class Size:
    """A model's bytes, and how many of them a forward pass reads."""

    file_bytes: int
    always_read_bytes: float  # by every pass, whatever its tokens
    routed_bytes: float  # of all routed experts, of which a pass reads some; 0 if dense
    experts: int
    experts_used: int
    layers: int
    # Tokens of a pass, and the distinct experts of a layer that it was seen to visit; in order.
    seen_experts: tuple[tuple[float, float], ...] = ()
    mtp_bytes: int | None = None  # that a token drafted by its MTP block reads; None: unknown

    def pass_bytes(self, n_tokens: float) -> float:
        """Return the bytes that a forward pass over so many tokens reads."""
        if not self.experts:
            return self.always_read_bytes
        return self.always_read_bytes + self.routed_bytes * self.visited(n_tokens) / self.experts

    def visited(self, n_tokens: float) -> float:
        """Return how many distinct experts a forward pass of an MoE activates in each layer.

        What was seen, as a share of uniform routing, is linear between the numbers of tokens seen
        and constant beyond them.
        """
        if not self.seen_experts:
            return self.evenly_visited(n_tokens)
        import numpy as np  # no job that measures needs it

        seen = [width for width, _ in self.seen_experts]
        shares = [experts / self.evenly_visited(width) for width, experts in self.seen_experts]
        return self.evenly_visited(n_tokens) * float(np.interp(n_tokens, seen, shares))

    def evenly_visited(self, n_tokens: float) -> float:
        """Return how many experts a forward pass activates on average by uniform routing.

        Of E experts with k used, b tokens activate E (1 - (1 - k/E)^b).
        """
        return self.experts * (1 - float((1 - self.experts_used / self.experts) ** n_tokens))


def split_by_active(total: float, active: float, experts: int, used: int) -> tuple[float, float]:
    """Return what every pass reads of a model, and what is in routed experts; bytes or weights.

    All = always + routed, and `active` = always + the share of routed that a token activates.
    """
    if not experts or used >= experts:
        return active, 0.0
    routed = (total - active) / (1 - used / experts)
    return total - routed, routed


def size_of_info(info: ModelInfo, seen_experts: tuple[tuple[int, float], ...] = ()) -> Size:
    """Return the size of a model whose file has been read; see `Size` for `seen_experts`."""
    read, experts = (info.always_read_bytes, info.routed_bytes), (info.experts, info.experts_used)
    return Size(info.size_bytes, *read, *experts, info.layers, seen_experts, info.mtp_bytes)
