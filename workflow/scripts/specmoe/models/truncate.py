"""A draft cut from a model's own file: its first layers, with its embedding, norm and head.

Drafting with a part of the target's own layers is self-speculation (Draft & Verify, LayerSkip).
Weights are copied as they are, whatever their type, so a cut of a quantized model is quantized.

Format: ggml's docs/gguf.md.
"""

import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Final

from gguf import GGUFReader, GGUFValueType

from specmoe.errors import ModelError
from specmoe.files import files_of_model
from specmoe.models.gguf_header import (
    Header,
    StoredValue,
    TensorInfo,
    read_header,
    read_stored_values,
)
from specmoe.models.gguf_writer import number_like, stored_tensors, write_gguf

_BLOCK: Final = re.compile(r"blk\.(\d+)\.")


def truncate(source: Path, layers: int, out: Path) -> None:
    """Write the first `layers` layers of a model, split or whole, atomically as one GGUF file.

    All metadata stays but what counts layers or parts; blocks that predict further tokens go.
    Raises ModelError if the model has no such part, cannot be read, or the disk is full or fails.
    """
    parts = files_of_model(source)
    headers = [read_header(part) for part in parts]
    values = _of_first_layers(source, headers[0], read_stored_values(parts[0]), layers)
    kept = [tensor for tensor in stored_tensors(parts, headers) if _is_kept(tensor.info, layers)]
    write_gguf(out, values, kept)


def _of_first_layers(
    source: Path, header: Header, values: dict[str, StoredValue], layers: int
) -> dict[str, StoredValue]:
    """Return the metadata of the first layers; raises ModelError if they are no model."""
    try:
        architecture = header.text("general.architecture")
        blocks = header.number(f"{architecture}.block_count")
        predictors = header.number(f"{architecture}.nextn_predict_layers", 0)
        interval = header.number(f"{architecture}.full_attention_interval", 1)
    except ValueError as error:
        raise ModelError(
            f"{source}: {error} in the metadata; is it a language model's GGUF?"
        ) from error
    own = blocks - predictors
    if not interval <= layers < own:
        least = f"{interval}, for one with full attention," if interval > 1 else "1"
        raise ModelError(
            f"{source}: no draft of its first {layers} layers: give at least {least} and fewer than"
            f" its {own}"
        )
    dropped = {f"{architecture}.nextn_predict_layers"}
    kept = {
        key: _shortened(value, blocks, layers) if _counts_layers(key, architecture) else value
        for key, value in values.items()
        if key not in dropped and not key.startswith("split.")
    }
    count = f"{architecture}.block_count"
    return kept | {count: number_like(values[count], layers)}


def _counts_layers(key: str, architecture: str) -> bool:
    """Whether a key may hold a value for each layer; the sections of a rotation are four always."""
    return key.startswith(f"{architecture}.") and not key.endswith("rope.dimension_sections")


def _shortened(value: StoredValue, blocks: int, layers: int) -> StoredValue:
    """Return an array of one scalar a block with those of the first layers, anything else as is."""
    if value.kind is not GGUFValueType.ARRAY:
        return value
    item, count = struct.unpack_from("<IQ", value.content)
    scalar = GGUFReader.gguf_scalar_to_np.get(GGUFValueType(item))
    if scalar is None or count != blocks:
        return value
    size = scalar().itemsize
    start = struct.calcsize("<IQ")
    shortened = value.content[start : start + layers * size]
    return replace(value, content=struct.pack("<IQ", item, layers) + shortened)


def _is_kept(tensor: TensorInfo, layers: int) -> bool:
    block = _BLOCK.match(tensor.name)
    return block is None or int(block[1]) < layers
