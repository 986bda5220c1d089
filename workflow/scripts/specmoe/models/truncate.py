"""A draft cut from a model's own file: its first layers, with its embedding, norm and head.

Drafting with a part of the target's own layers is self-speculation (Draft & Verify, LayerSkip).
Weights are copied as they are, whatever their type, so a cut of a quantized model is quantized.

Format: ggml's docs/gguf.md.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from gguf import GGUF_DEFAULT_ALIGNMENT, GGUFReader, GGUFValueType

from specmoe.errors import ModelError
from specmoe.files import files_of_model, written_whole
from specmoe.models.gguf_header import (
    Header,
    StoredValue,
    TensorInfo,
    read_header,
    read_stored_values,
)

_BLOCK: Final = re.compile(r"blk\.(\d+)\.")
_VERSION: Final = 3
_PIECE: Final = 2**24  # bytes copied at a time


def truncate(source: Path, layers: int, out: Path) -> None:
    """Write the first `layers` layers of a model, split or whole, atomically as one GGUF file.

    All metadata stays but what counts layers or parts; blocks that predict further tokens go.
    Raises ModelError if the model has no such part, cannot be read, or the disk is full or fails.
    """
    parts = files_of_model(source)
    headers = [read_header(part) for part in parts]
    values = _of_first_layers(source, headers[0], read_stored_values(parts[0]), layers)
    kept = [
        (part, header.data_start, tensor)
        for part, header in zip(parts, headers, strict=True)
        for tensor in header.tensors
        if _is_kept(tensor, layers)
    ]
    alignment = headers[0].number("general.alignment", GGUF_DEFAULT_ALIGNMENT)
    with written_whole(out) as unfinished, unfinished.open("wb") as file:
        placed = list(_placed([tensor for _, _, tensor in kept], alignment))
        file.write(b"GGUF" + struct.pack("<IQQ", _VERSION, len(placed), len(values)))
        for key, value in values.items():
            file.write(_text(key) + struct.pack("<I", value.kind) + value.content)
        for tensor in placed:
            file.write(_entry(tensor))
        _pad(file, alignment)
        for part, data_start, tensor in kept:
            _copy(part, data_start + tensor.offset, tensor.size_bytes, file)
            _pad(file, alignment)


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
    return kept | {count: replace(values[count], content=_number(values[count], layers))}


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


def _placed(tensors: Sequence[TensorInfo], alignment: int) -> Iterator[TensorInfo]:
    """Yield the tensors with their offsets in a file that has them and no others."""
    offset = 0
    for tensor in tensors:
        yield replace(tensor, offset=offset)
        offset += -(-tensor.size_bytes // alignment) * alignment


def _entry(tensor: TensorInfo) -> bytes:
    sizes = tensor.dimensions
    shape = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return _text(tensor.name) + shape + struct.pack("<IQ", tensor.type, tensor.offset)


def _number(value: StoredValue, number: int) -> bytes:
    return number.to_bytes(len(value.content), "little")


def _text(text: str) -> bytes:
    content = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(content)) + content


def _copy(part: Path, start: int, size: int, out: BinaryIO) -> None:
    with part.open("rb") as file:
        file.seek(start)
        while size:
            piece = file.read(min(size, _PIECE))
            if not piece:  # it was whole when its header was read
                raise ModelError(f"{part}: truncated while it was read; make or fetch it again")
            out.write(piece)
            size -= len(piece)


def _pad(file: BinaryIO, alignment: int) -> None:
    file.write(bytes(-file.tell() % alignment))
