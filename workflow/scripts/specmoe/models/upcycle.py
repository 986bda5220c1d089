"""An MoE of equal experts, made from a dense model: sparse upcycling (Komatsuzaki et al., 2023).

Every expert is a copy of the layer's feed-forward block, so whichever the router chooses, the layer
computes what the dense one computes. llama.cpp normalises the weights of the chosen experts, so
that they sum to one (src/models/llama.cpp and qwen3moe.cpp: `norm_w` of `build_moe_ffn`). Weights
are copied as they are stored, whatever their type.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGMLQuantizationType

from specmoe.config.models import UpcycleModel
from specmoe.errors import ModelError
from specmoe.files import files_of_model
from specmoe.models.gguf_header import (
    Header,
    StoredValue,
    TensorInfo,
    read_header,
    read_stored_values,
)
from specmoe.models.gguf_writer import (
    NewTensor,
    stored_number,
    stored_tensors,
    stored_text,
    write_gguf,
)

# Architectures of dense models, and of the MoEs that compute the same around their experts.
_MOES: Final = {"llama": "llama", "qwen3": "qwen3moe"}
_OF_FEED_FORWARD: Final = re.compile(r"blk\.(\d+)\.ffn_(?!norm\.weight$)(.+)")
_COPIED: Final = ("gate.weight", "up.weight", "down.weight")
# A sum of so many uniform numbers is normal for our purpose, and exact on every machine.
_SUMMED: Final = 12


def upcycle(source: Path, model: UpcycleModel, out: Path) -> None:
    """Write the MoE of equal experts that `model` describes from the dense model `source`.

    Raises ModelError if the source is of another architecture, has experts, or cannot be read, or
    if the disk is too small, full, or fails. Nothing unfinished is left.
    """
    parts = files_of_model(source)
    headers = [read_header(part) for part in parts]
    whole = Header(headers[0].metadata, [tensor for header in headers for tensor in header.tensors])
    try:
        architecture = _architecture(whole)
    except ValueError as error:
        raise ModelError(f"{source}: cannot be upcycled: {error}") from error
    values = _with_experts(architecture, read_stored_values(parts[0]), model)
    write_gguf(out, values, list(_tensors(stored_tensors(parts, headers), model)))


def _architecture(header: Header) -> str:
    """Return the architecture of a dense model; raises ValueError if it cannot be upcycled."""
    architecture = header.text("general.architecture")
    if any(tensor.is_routed for tensor in header.tensors):
        raise ValueError(f"it has experts already (architecture {architecture})")
    if architecture not in _MOES:
        raise ValueError(f"architecture {architecture!r}; known are {' and '.join(_MOES)}")
    header.number(f"{architecture}.feed_forward_length")  # one for all layers
    layers = header.number(f"{architecture}.block_count")
    wanted = {f"blk.{layer}.ffn_{name}" for layer in range(layers) for name in _COPIED}
    found = {tensor.name for tensor in header.tensors if _OF_FEED_FORWARD.fullmatch(tensor.name)}
    if strange := sorted(wanted ^ found):
        raise ValueError(f"it {'has' if strange[0] in found else 'lacks'} a tensor {strange[0]}")
    return architecture


def _with_experts(
    architecture: str, values: Mapping[str, StoredValue], model: UpcycleModel
) -> dict[str, StoredValue]:
    """Return the metadata of the MoE: the dense model's, with the numbers of experts."""
    moe = _MOES[architecture]
    renamed = {
        re.sub(rf"^{architecture}\.", f"{moe}.", key): value
        for key, value in values.items()
        if not key.startswith("split.")
    }
    return renamed | {
        "general.architecture": stored_text(moe),
        f"{moe}.expert_count": stored_number(model.experts),
        f"{moe}.expert_used_count": stored_number(model.used),
        # `llama` experts have the width of its feed-forward block, whatever this says.
        f"{moe}.expert_feed_forward_length": renamed[f"{moe}.feed_forward_length"],
    }


def _tensors(dense: Iterable[NewTensor], model: UpcycleModel) -> Iterator[NewTensor]:
    """Yield the MoE's tensors: a router in each layer, its experts, and all others as they are."""
    for tensor in dense:
        part = _OF_FEED_FORWARD.fullmatch(tensor.info.name)
        if part is None:
            yield tensor
            continue
        layer, name = int(part[1]), part[2]
        if name == "gate.weight":
            yield _router(layer, tensor.info.dimensions[0], model)
        yield _experts(tensor, f"blk.{layer}.ffn_{name.replace('.', '_exps.')}", model.experts)


def _experts(tensor: NewTensor, name: str, experts: int) -> NewTensor:
    """Return the copies of a matrix, one after the other."""
    info = replace(
        tensor.info,
        name=name,
        elements=tensor.info.elements * experts,
        dimensions=(*tensor.info.dimensions, experts),
    )

    def pieces() -> Iterator[bytes]:
        for _ in range(experts):
            yield from tensor.pieces()

    return NewTensor(info, pieces)


def _router(layer: int, hidden: int, model: UpcycleModel) -> NewTensor:
    """Return a layer's router: a random direction for each expert.

    The hidden states that it reads are the layer's real ones, so routing is as uneven as they are.
    """
    shape = hidden, model.experts
    kind = GGMLQuantizationType.F32
    info = TensorInfo(f"blk.{layer}.ffn_gate_inp.weight", hidden * model.experts, kind, 0, shape)
    return NewTensor(info, lambda: [_directions(model, layer, hidden)])


def _directions(model: UpcycleModel, layer: int, hidden: int) -> bytes:
    """Return normal numbers / √hidden, which depend on the seed and the layer alone.

    numpy's own normal numbers may change between its versions (NEP 19), and logarithms between
    machines; a model's digest must not.
    """
    stream = np.random.SFC64(np.random.SeedSequence([model.seed, layer]))
    words = stream.random_raw(model.experts * hidden * _SUMMED // 4).astype("<u8", copy=False)
    sums = words.view("<u2").reshape(-1, _SUMMED).sum(axis=1, dtype=np.int64)
    # The variance of a whole number below n, uniform, is (n² - 1) / 12.
    normal = (sums - _SUMMED * (2**16 - 1) / 2) / sqrt(_SUMMED * (2**32 - 1) / 12)
    stored: bytes = (normal / sqrt(hidden)).astype("<f4").tobytes()
    return stored
