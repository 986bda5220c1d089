"""Write a GGUF file whose weights come piece by piece, so that no model need fit in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from gguf import GGUFWriter

from specmoe.errors import ModelError
from specmoe.files import free_bytes, gigabytes, written_whole
from specmoe.models.gguf_header import Metadata, TensorInfo, alignment_of

_PIECE: Final = 2**24  # bytes copied at a time


@dataclass(frozen=True)
class NewTensor:
    """A tensor to write, and its weights piece by piece: bytes, or numpy arrays."""

    info: TensorInfo
    pieces: Callable[[], Iterable[Any]]


def copied(info: TensorInfo) -> NewTensor:
    """Return a tensor of another file, to be written as it is."""
    return NewTensor(info, partial(_stored, info))


def writer_of(architecture: str, metadata: Metadata) -> GGUFWriter:
    """Return the writer of a file with this metadata, for `write_gguf`.

    Empty arrays, which the package does not write, are left out.
    """
    writer = GGUFWriter(None, architecture)
    writer.data_alignment = alignment_of(metadata)
    for key, value in metadata.items():
        if key != "general.architecture" and value.value != []:
            writer.add_key_value(key, value.value, value.type, value.sub_type)
    return writer


def write_gguf(out: Path, writer: GGUFWriter, tensors: Sequence[NewTensor]) -> None:
    """Write a GGUF file atomically; `writer` has its metadata and no tensors yet.

    Raises ModelError if the disk is too small.
    """
    alignment = writer.data_alignment
    sizes = [tensor.info.size_bytes for tensor in tensors]
    needed = sum(size + -size % alignment for size in sizes)
    free = free_bytes(out.parent)
    if needed > free:
        raise ModelError(
            f"{out}: not written, it has {gigabytes(needed)} and the disk {gigabytes(free)} free;"
            " make room there"
        )
    for info in (tensor.info for tensor in tensors):
        # The package also requires numpy's type, and ignores it because GGUF's is given.
        unused = np.dtype(np.uint16)
        writer.add_tensor_info(info.name, info.dimensions[::-1], unused, info.size_bytes, info.type)
    with written_whole(out) as unfinished:
        try:
            writer.write_header_to_file(unfinished)
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
        finally:
            writer.close()
        with unfinished.open("ab") as file:
            _pad(file, alignment)
            for tensor in tensors:
                file.writelines(tensor.pieces())
                _pad(file, alignment)


def _stored(tensor: TensorInfo) -> Iterator[bytes]:
    assert tensor.file
    left = tensor.size_bytes
    with tensor.file.open("rb") as file:
        file.seek(tensor.start)
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:  # it was whole when its header was read
                raise ModelError(f"{tensor.file}: truncated while it was read; fetch it again")
            yield piece
            left -= len(piece)


def _pad(file: BinaryIO, alignment: int) -> None:
    file.write(bytes(-file.tell() % alignment))
