"""Parse the header of a GGUF file: its metadata and its tensor table, without its weights.

The header is parsed here rather than by `gguf.GGUFReader`, which builds several numpy arrays for
each of a real vocabulary's 248 320 tokens; a card of a real model must not take minutes.

Format: ggml's docs/gguf.md, versions 2 and 3.
"""

import mmap
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from gguf import (
    GGML_QUANT_SIZES,
    GGUF_DEFAULT_ALIGNMENT,
    GGMLQuantizationType,
    GGUFReader,
    GGUFValueType,
)

from specmoe.errors import ModelError

_MOST_DIMENSIONS = 4  # ggml's GGML_MAX_DIMS

Value = int | float | bool | str | list[str] | None
"""A metadata value; None stands for an array of numbers, which is not used here."""


@dataclass(frozen=True)
class TensorInfo:
    """One entry of the tensor table of a GGUF file."""

    name: str
    elements: int
    type: GGMLQuantizationType
    offset: int  # bytes from the start of the tensor data
    dimensions: tuple[int, ...] = ()  # ggml's order: the row, contiguous in memory, comes first

    @property
    def size_bytes(self) -> int:
        """Bytes of the weights, without padding."""
        per_block, block_bytes = GGML_QUANT_SIZES[self.type]
        return self.elements // per_block * block_bytes

    @property
    def is_routed(self) -> bool:
        """Whether it holds the weights of a layer's routed experts, all of them."""
        return "_exps." in self.name


@dataclass(frozen=True)
class Header:
    """What a file says about itself."""

    metadata: dict[str, Value]
    tensors: list[TensorInfo]
    data_start: int = 0  # bytes from the start of the file

    def number(self, key: str, default: int | None = None) -> int:
        """Return a whole number; raises ValueError if there is none and no default."""
        value = self.metadata.get(key, default)
        if not isinstance(value, int):
            raise ValueError(f"no whole number under {key!r}")
        return value

    def text(self, key: str) -> str:
        """Return a text; raises ValueError if there is none."""
        value = self.metadata.get(key)
        if not isinstance(value, str):
            raise ValueError(f"no text under {key!r}")
        return value

    @property
    def has_chat_template(self) -> bool:
        """Whether the file has a chat template."""
        return isinstance(self.metadata.get("tokenizer.chat_template"), str)

    def tokens(self) -> list[str]:
        """Return the vocabulary; raises ValueError if there is none."""
        value = self.metadata.get("tokenizer.ggml.tokens")
        if not isinstance(value, list):
            raise ValueError("no vocabulary")
        return value


def read_header(path: Path) -> Header:
    """Parse a file's header, and check that the tensor data it announces is all there.

    Raises ModelError if the file is missing, not GGUF, or truncated.
    """
    again = "fetch or make it again"
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            header = _parse(data)
            size = len(data)
    except FileNotFoundError as error:
        raise ModelError(f"{path}: no such model file; make or fetch it first") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from error
    except EOFError as error:
        raise ModelError(f"{path}: truncated within its header; {again}") from error
    except ValueError as error:
        # mmap's own complaint about an empty file is a ValueError as well.
        reason = "empty" if not path.stat().st_size else str(error)
        raise ModelError(f"{path}: not a readable GGUF file ({reason}); {again}") from error
    ends = (header.data_start + tensor.offset + tensor.size_bytes for tensor in header.tensors)
    needed = max(ends, default=0)
    if size < needed:
        raise ModelError(f"{path}: truncated, {size} bytes of at least {needed}; {again}")
    return header


@dataclass(frozen=True)
class StoredValue:
    """A metadata value as a file stores it."""

    kind: GGUFValueType
    content: bytes


def read_stored_values(path: Path) -> dict[str, StoredValue]:
    """Return the metadata of a file that `read_header` could read, by key, in the file's order."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data)
        cursor.take(16)  # magic, version, number of tensors
        values = {}
        for _ in range(cursor.count()):
            key, kind = cursor.text(), GGUFValueType(cursor.count(4))
            start = cursor.position
            cursor.value(kind)
            values[key] = StoredValue(kind, data[start : cursor.position])
    return values


class _Cursor:
    """A position in the mapped file from which values are taken one after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise EOFError
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def count(self, size_bytes: int = 8) -> int:
        return int.from_bytes(self.take(size_bytes), "little")

    def text(self) -> str:
        # Vocabularies may hold tokens that are no valid UTF-8; they must still compare.
        return self.take(self.count()).decode("utf-8", "surrogateescape")

    def value(self, kind: GGUFValueType) -> Value:
        if kind is GGUFValueType.STRING:
            return self.text()
        if kind is not GGUFValueType.ARRAY:
            layout = np.dtype(GGUFReader.gguf_scalar_to_np[kind]).newbyteorder("<")
            scalar: int | float | bool = np.frombuffer(self.take(layout.itemsize), layout)[0].item()
            return scalar
        item, count = GGUFValueType(self.count(4)), self.count()
        if item is GGUFValueType.STRING:
            return [self.text() for _ in range(count)]
        if item is GGUFValueType.ARRAY:
            raise ValueError("an array of arrays, which llama.cpp does not read either")
        self.take(count * np.dtype(GGUFReader.gguf_scalar_to_np[item]).itemsize)
        return None


def _parse(data: mmap.mmap) -> Header:
    cursor = _Cursor(data)
    if cursor.take(4) != b"GGUF":
        raise ValueError("it does not start with 'GGUF'")
    version = cursor.count(4)
    if version not in (2, 3):
        raise ValueError(f"version {version}, big-endian or unknown; known are 2 and 3")
    tensor_count, value_count = cursor.count(), cursor.count()
    metadata = {}
    for _ in range(value_count):
        key = cursor.text()
        metadata[key] = cursor.value(GGUFValueType(cursor.count(4)))
    tensors = [_tensor(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", GGUF_DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"alignment {alignment!r}")
    return Header(metadata, tensors, -(-cursor.position // alignment) * alignment)


def _tensor(cursor: _Cursor) -> TensorInfo:
    name = cursor.text()
    dimensions = cursor.count(4)
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError(f"tensor {name!r} of {dimensions} dimensions")
    sizes = tuple(cursor.count() for _ in range(dimensions))
    kind = GGMLQuantizationType(cursor.count(4))
    return TensorInfo(name, prod(sizes), kind, cursor.count(), sizes)
