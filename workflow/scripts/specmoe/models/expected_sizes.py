"""Sizes of models whose files may not exist yet, from their config entries or sources."""

import re
from collections.abc import Mapping

from specmoe.config.models import (
    AnyModel,
    Family,
    HubModel,
    PackageModel,
    QuantizeModel,
    SyntheticDraft,
    SyntheticModel,
    TruncateModel,
    UpcycleModel,
)
from specmoe.config.schema import Config
from specmoe.errors import ConfigError
from specmoe.models.info import ModelInfo, Size, size_of_info, split_by_active
from specmoe.models.synthetic import tensors

# Bits a weight takes in a whole file, from llama.cpp's tools/quantize/README.md (Llama 3.1 8B);
# types that are not listed count as 16, which is too much rather than too little.
BITS = {
    "F32": 32.0,
    "Q8_0": 8.5,
    "Q6_K": 6.56,
    "Q5_K_M": 5.7,
    "Q5_K_S": 5.57,
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


def size_of(
    model: str, config: Config, infos: Mapping[str, ModelInfo], asked: Mapping[str, int]
) -> Size | None:
    """Return what is known of a model's size; None if nothing is.

    `infos` has the models whose files are here, `asked` the bytes of others as the hub says.
    """
    if model in infos:
        return size_of_info(infos[model])
    entry, family = config.models[model], config.family(model)
    source = size_of(entry.made_from, config, infos, asked) if entry.made_from else None
    if isinstance(entry, UpcycleModel):
        return _of_experts(entry, config.family(entry.source), source) if source else None
    known = _file_bytes(entry, config, family, source)
    if model in asked:
        known = asked[model], "the hub"
    if known is None:
        return None
    file_bytes, basis = known
    if family is not None:
        # As if all parameters had the same type.
        scale, experts = file_bytes / family.parameters, (family.experts, family.experts_used)
        always, routed = split_by_active(family.parameters, family.parameters_active, *experts)
        return Size(file_bytes, always * scale, routed * scale, *experts, family.layers, basis)
    layers = source.layers if source else TYPICAL_LAYERS
    if isinstance(entry, TruncateModel):
        layers = entry.layers
    if isinstance(entry, SyntheticModel):
        layers = entry.recipe.layers
    return Size(file_bytes, file_bytes, 0, 0, 0, layers, f"{basis}; taken for dense")


def info_of_entry(model: str, config: Config) -> ModelInfo:
    """Return the info of a hub model whose file is not there, from the entry and its family.

    What only the file tells (digests, types of tensors, the context's length) is null. Raises
    ConfigError for a model of another kind, or without a family or a size.
    """
    entry, family, size = config.models[model], config.family(model), size_of(model, config, {}, {})
    if not isinstance(entry, HubModel) or family is None or size is None:
        raise ConfigError(
            f"config: model {model!r}: without its file, only a model of kind 'hub' with a family"
            " and a size can be described"
        )
    type_in_name = _TYPE_IN_NAME.search(entry.file)
    return ModelInfo(
        size_bytes=size.file_bytes,
        sha256=None,
        architecture=family.architecture,
        type=type_in_name[1] if type_in_name else None,
        parameters_total=round(family.parameters),
        parameters_active=round(family.parameters_active),
        tensor_count=family.tensors,
        tensor_types=None,
        always_read_bytes=round(size.always_read_bytes),
        routed_bytes=round(size.routed_bytes),
        vocabulary_size=family.vocabulary,
        vocabulary_sha256=None,
        context_length=None,
        layers=family.layers,
        experts=family.experts,
        experts_used=family.experts_used,
    )


def _file_bytes(
    entry: AnyModel, config: Config, family: Family | None, source: Size | None
) -> tuple[int, str] | None:
    """Return the bytes of a model's file and where the figure comes from, in words."""
    bits = BITS.get(entry.type, FULL_BITS) if isinstance(entry, QuantizeModel) else FULL_BITS
    match entry:
        case HubModel() | PackageModel() if entry.size_bytes:
            return entry.size_bytes, "the config"
        case SyntheticModel():
            return sum(tensor.info.size_bytes for tensor in tensors(entry.recipe)), "its recipe"
        case SyntheticDraft():
            # At most what its F16 matrices have: two layers, and tables that EAGLE-3 shares.
            target = config.models[entry.target]
            assert isinstance(target, SyntheticModel)  # see `load`
            recipe = target.recipe
            width = 10 * (recipe.hidden + recipe.heads * recipe.head_size) + 6 * recipe.ffn
            width += 0 if entry.method == "eagle3" else 4 * recipe.vocabulary
            return 2 * recipe.hidden * width, "at most, by its target's recipe"
        case TruncateModel() if source:
            return source.file_bytes * entry.layers // source.layers, "its source's layers"
        case QuantizeModel() if source and family is None:
            return round(source.file_bytes * bits / FULL_BITS), "its source and type"
    return (round(family.parameters * bits / 8), "its family and type") if family else None


def _of_experts(entry: UpcycleModel, family: Family | None, source: Size) -> Size:
    """Return the size of a model whose experts are copies of its source's feed-forward layers.

    These have the share of the source's bytes that they have of its family's parameters. Without
    that number the size is the largest possible: as many copies of the whole model.
    """
    share, basis = 1.0, "at most: its source times its experts"
    if family is not None and family.feed_forward is not None:
        share, basis = family.feed_forward / family.parameters, "its source's family"
    copied = source.file_bytes * share
    return Size(
        file_bytes=round(source.file_bytes + (entry.experts - 1) * copied),
        always_read_bytes=max(source.always_read_bytes - copied, 0),
        routed_bytes=entry.experts * copied,
        experts=entry.experts,
        experts_used=entry.used,
        layers=source.layers,
        basis=basis,
    )
