"""Write a GGUF file from parts of another: metadata and weights are copied as they are stored.

Format: ggml's docs/gguf.md.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from gguf import GGUF_DEFAULT_ALIGNMENT, GGUFValueType

from specmoe.errors import ModelError
from specmoe.files import free_bytes, gigabytes, written_whole
from specmoe.models.gguf_header import Header, StoredValue, TensorInfo

_VERSION: Final = 3
_PIECE: Final = 2**24  # bytes copied at a time
_ALIGNMENT: Final = "general.alignment"


@dataclass(frozen=True)
class NewTensor:
    """A tensor to write: its entry, whose offset does not count, and its weights piece by piece."""

    info: TensorInfo
    pieces: Callable[[], Iterable[bytes]]


def stored_tensors(parts: Sequence[Path], headers: Sequence[Header]) -> Iterator[NewTensor]:
    """Yield the tensors of a model, split or whole, to be copied."""
    for part, header in zip(parts, headers, strict=True):
        for info in header.tensors:
            start = header.data_start + info.offset
            yield NewTensor(info, partial(_stored, part, start, info.size_bytes))


def write_gguf(out: Path, values: Mapping[str, StoredValue], tensors: Sequence[NewTensor]) -> None:
    """Write a GGUF file atomically, in the memory that a piece of a tensor takes.

    Raises ModelError if the disk is too small, full, or fails.
    """
    alignment = number_of(values[_ALIGNMENT]) if _ALIGNMENT in values else GGUF_DEFAULT_ALIGNMENT
    placed = list(_placed([tensor.info for tensor in tensors], alignment))
    needed = sum(_padded(info.size_bytes, alignment) for info in placed)
    free = free_bytes(out.parent)
    if needed > free:
        raise ModelError(
            f"{out}: not written, it has {gigabytes(needed)} and the disk {gigabytes(free)} free;"
            " make room there"
        )
    with written_whole(out) as unfinished, unfinished.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", _VERSION, len(placed), len(values)))
        for key, value in values.items():
            file.write(_text(key) + struct.pack("<I", value.kind) + value.content)
        for info in placed:
            file.write(_entry(info))
        _pad(file, alignment)
        for tensor in tensors:
            file.writelines(tensor.pieces())
            _pad(file, alignment)


def number_of(value: StoredValue) -> int:
    """Return a stored whole number."""
    return int.from_bytes(value.content, "little")


def number_like(value: StoredValue, number: int) -> StoredValue:
    """Return a whole number in the type of another one."""
    return replace(value, content=number.to_bytes(len(value.content), "little"))


def stored_number(number: int) -> StoredValue:
    """Return a whole number as keys of architectures store it."""
    return StoredValue(GGUFValueType.UINT32, struct.pack("<I", number))


def stored_text(text: str) -> StoredValue:
    """Return a text as a file stores it."""
    return StoredValue(GGUFValueType.STRING, _text(text))


def _placed(tensors: Sequence[TensorInfo], alignment: int) -> Iterator[TensorInfo]:
    """Yield the tensors with their offsets in a file that has them and no others."""
    offset = 0
    for tensor in tensors:
        yield replace(tensor, offset=offset)
        offset += _padded(tensor.size_bytes, alignment)


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _entry(tensor: TensorInfo) -> bytes:
    sizes = tensor.dimensions
    shape = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return _text(tensor.name) + shape + struct.pack("<IQ", tensor.type, tensor.offset)


def _text(text: str) -> bytes:
    content = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(content)) + content


def _stored(part: Path, start: int, size: int) -> Iterator[bytes]:
    """Yield consecutive pieces of a file, from its byte `start` on."""
    with part.open("rb") as file:
        file.seek(start)
        while size:
            piece = file.read(min(size, _PIECE))
            if not piece:  # it was whole when its header was read
                raise ModelError(f"{part}: truncated while it was read; make or fetch it again")
            yield piece
            size -= len(piece)


def _pad(file: BinaryIO, alignment: int) -> None:
    file.write(bytes(-file.tell() % alignment))
