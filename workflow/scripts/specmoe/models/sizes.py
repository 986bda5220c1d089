"""How large a model is, or will be: from its file, its config entry, or what it is made from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from specmoe.config.models import (
    AnyModel,
    ConvertModel,
    Family,
    HubModel,
    QuantizeModel,
    SyntheticModel,
)
from specmoe.config.schema import Config
from specmoe.errors import ConfigError
from specmoe.models.gguf import ModelCard
from specmoe.models.synthetic import tensors

# Bits a weight takes in a whole file, from llama.cpp's tools/quantize/README.md (Llama 3.1 8B);
# types that are not listed count as 16, which is too much rather than too little.
BITS = {
    "F32": 32.0,
    "BF16": 16.0,
    "F16": 16.0,
    "Q8_0": 8.5,
    "Q6_K": 6.56,
    "Q5_K_M": 5.7,
    "Q5_K_S": 5.57,
    "Q4_K": 4.5,
    "Q4_K_M": 4.89,
    "Q4_K_S": 4.67,
    "Q4_0": 4.66,
    "IQ4_XS": 4.46,
    "Q3_K_M": 4.0,
    "Q2_K": 3.16,
}
FULL_BITS = 16.0
TYPICAL_LAYERS = 32

# The type at the end of a GGUF's name: Q4_K_M, BF16, UD-Q4_K_XL, …
_TYPE_IN_NAME = re.compile(r"-((?:UD-)?(?:I?Q\d\w*|BF16|F16|F32))(?:-\d{5}-of-\d{5})?\.gguf$")


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


def size_of(
    model: str, config: Config, cards: Mapping[str, ModelCard], asked: Mapping[str, int]
) -> Size | None:
    """Return what is known of a model's size; None if nothing is.

    `cards` are those of models whose files are there, `asked` what the hub says of others, in
    bytes.
    """
    if model in cards:
        return size_of_card(cards[model])
    known = _file_bytes(config.models[model], model, config, cards, asked)
    if known is None:
        return None
    file_bytes, basis = known
    family = config.family(model)
    if family is None:
        basis += "; taken for dense"
        return Size(file_bytes, file_bytes, 0, 0, 0, TYPICAL_LAYERS, basis)
    return _of_family(file_bytes, family, basis)


def card_of_entry(model: str, config: Config) -> dict[str, Any]:
    """Return a card, as `gguf.ModelCard` has it, of a hub model whose file is not there.

    It says what the entry and its family say: sizes as rounded there, the type as the file's name
    has it. What only the file tells (digests, types of tensors, the context's length) is null.
    Raises ConfigError for a model of another kind, or without a family or a size.
    """
    entry, family, size = config.models[model], config.family(model), size_of(model, config, {}, {})
    if not isinstance(entry, HubModel) or family is None or size is None:
        raise ConfigError(
            f"config: model {model!r}: without its file, only a model of kind 'hub' with a family"
            " and a size can be described"
        )
    type_in_name = _TYPE_IN_NAME.search(entry.file)
    return {
        "size_bytes": size.file_bytes,
        "sha256": None,
        "architecture": family.architecture,
        "type": type_in_name[1] if type_in_name else None,
        "parameters_total": round(family.parameters),
        "parameters_active": round(family.parameters_active),
        "tensor_count": family.tensors,
        "tensor_types": None,
        "always_read_bytes": round(size.always_read_bytes),
        "routed_bytes": round(size.routed_bytes),
        "vocabulary_size": family.vocabulary,
        "vocabulary_sha256": None,
        "context_length": None,
        "layers": family.layers,
        "experts": family.experts,
        "experts_used": family.experts_used,
    }


def _file_bytes(
    entry: AnyModel,
    model: str,
    config: Config,
    cards: Mapping[str, ModelCard],
    asked: Mapping[str, int],
) -> tuple[int, str] | None:
    if model in asked:
        return asked[model], "the hub"
    if isinstance(entry, HubModel) and entry.size_bytes:
        return entry.size_bytes, "the config"
    if isinstance(entry, HubModel) and entry.size_gb:
        return round(entry.size_gb * 1e9), "the config, rounded"
    if isinstance(entry, SyntheticModel):
        return _synthetic_bytes(entry), "its recipe"
    family = config.family(model)
    bits = BITS.get(_type(entry), FULL_BITS)
    if family is not None:
        return round(family.parameters * bits / 8), "its family and type"
    if isinstance(entry, QuantizeModel):
        source = size_of(entry.source, config, cards, asked)
        if source is not None:
            return round(source.file_bytes * bits / FULL_BITS), "its source and type"
    return None


def _of_family(file_bytes: int, family: Family, basis: str) -> Size:
    """Split a file's bytes by the family's parameters, as if all had the same type."""
    scale = file_bytes / family.parameters
    if not family.experts:
        always, routed = family.parameters_active, 0.0
    else:
        # All = always + routed, active = always + the routed share that a token visits.
        unvisited = 1 - family.experts_used / family.experts
        routed = (family.parameters - family.parameters_active) / unvisited
        always = family.parameters - routed
    return Size(
        file_bytes,
        always * scale,
        routed * scale,
        family.experts,
        family.experts_used,
        family.layers,
        basis,
    )


def _type(entry: AnyModel) -> str:
    if isinstance(entry, QuantizeModel | ConvertModel):
        return entry.type
    if isinstance(entry, HubModel):
        stem = Path(entry.file).stem
        return next((kind for kind in BITS if kind in stem), "")
    return ""


def _synthetic_bytes(entry: SyntheticModel) -> int:
    plan = tensors(entry.recipe)
    return round(sum(prod(tensor.shape) * BITS.get(tensor.dtype, FULL_BITS) / 8 for tensor in plan))
