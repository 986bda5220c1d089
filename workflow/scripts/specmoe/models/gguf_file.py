"""GGUF files: headers parsed without the weights, and files written piece by piece.

`gguf.GGUFReader` makes numpy arrays for each of a real vocabulary's 248 320 tokens and takes
seconds, this parser a tenth of one. Format: ggml's docs/gguf.md, versions 2 and 3.
"""

import mmap
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from math import prod
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, constants
from gguf.gguf_writer import GGUFValue

from specmoe.config.base import first_error
from specmoe.errors import ModelError, one_line
from specmoe.files import files_of_model, written_whole

_BLOCK = re.compile(r"blk\.(\d+)\.")
# Names of files that were cut to be uploaded: m.gguf.part1of2, m.gguf-split-a.
_CUT = re.compile(r"(.+\.gguf)([.-](?:part|split)-?)\w+?(?:of(\d\d?))?$")
_PIECE: Final = 2**24  # bytes copied at a time
# Types that the engine has (ggml/include/ggml.h), and the package does not know yet.
NewerType = IntEnum("NewerType", {"Q2_0": 42})
# The weights and bytes of a block of each type.
_SIZES: Final = constants.GGML_QUANT_SIZES | {NewerType.Q2_0: (64, 18)}
_TYPES: Final = {kind.value: kind for kind in _SIZES}

Metadata = dict[str, GGUFValue]
"""Values by key; texts are bytes, because the tokens of a vocabulary may be no valid UTF-8."""


@dataclass(frozen=True)
class TensorInfo:
    """One entry of the tensor table of a GGUF file."""

    name: str
    dimensions: tuple[int, ...]  # ggml's order: the row, contiguous in memory, comes first
    type: GGMLQuantizationType | NewerType
    file: Path | None = None  # None: it is not in a file yet
    start: int = 0  # bytes from the start of the file

    @property
    def elements(self) -> int:
        """How many weights it has."""
        return prod(self.dimensions)

    @property
    def size_bytes(self) -> int:
        """Bytes of the weights, without padding."""
        per_block, block_bytes = _SIZES[self.type]
        return self.elements // per_block * block_bytes

    @property
    def block(self) -> int | None:
        """The number of its block, from 0; None of what no block has."""
        match = _BLOCK.match(self.name)
        return int(match[1]) if match else None

    @property
    def is_routed(self) -> bool:
        """Whether it holds the weights of a layer's routed experts, all of them."""
        return "_exps." in self.name

    def weights(self, times: int = 1) -> Iterator[bytes]:
        """Yield its bytes in its file, piece by piece, as often as asked for."""
        assert self.file
        with self.file.open("rb") as file:
            for _ in range(times):
                file.seek(self.start)
                for left in range(self.size_bytes, 0, -_PIECE):
                    piece = file.read(wanted := min(left, _PIECE))
                    if len(piece) < wanted:  # it was whole when its header was read
                        error = f"{self.file}: truncated while it was read; fetch it again"
                        raise ModelError(error)
                    yield piece


@dataclass(frozen=True)
class Header:
    """What a model says about itself."""

    metadata: Metadata
    tensors: list[TensorInfo]

    def number(self, key: str, default: int | None = None) -> int:
        """Return a whole number; raises ValueError if the header lacks it, without a default."""
        value = self.metadata[key].value if key in self.metadata else default
        if not isinstance(value, int):
            raise ValueError(f"no whole number under {key!r}")
        return value

    def text(self, key: str, default: bytes | None = None) -> str:
        """Return a text; raises ValueError if the header lacks it, without a default."""
        value = self.metadata[key].value if key in self.metadata else default
        if not isinstance(value, bytes):
            raise ValueError(f"no text under {key!r}")
        return value.decode()

    @property
    def architecture(self) -> str:
        """The name of the network's graph; raises ValueError if the header lacks it."""
        return self.text("general.architecture")

    def number_of_architecture(self, key: str, default: int | None = None) -> int:
        """Return a whole number under a key that begins with the architecture, as `number`."""
        return self.number(f"{self.architecture}.{key}", default)

    @property
    def chat_template(self) -> bytes | None:
        """The file's chat template, if it has one."""
        value = self.metadata.get("tokenizer.chat_template")
        return value.value if value and value.type is GGUFValueType.STRING else None

    def tokens(self) -> list[bytes]:
        """Return the vocabulary; raises ValueError if the header lacks it."""
        value = self.metadata.get("tokenizer.ggml.tokens")
        if value is None or value.sub_type is not GGUFValueType.STRING:
            raise ValueError("no vocabulary")
        return list(value.value)


def read_header(model: Path) -> Header:
    """Parse the header of a model, split or whole: metadata of the first part, tensors of all.

    Raises ModelError if a file is missing, not GGUF or truncated, or parts lack tensors.
    """
    parts = files_of_model(model)
    headers = [_read_part(part) for part in parts]
    tensors = [tensor for header in headers for tensor in header.tensors]
    with named_if_no_model(model):
        announced = headers[0].number("split.tensors.count", len(tensors))
    if announced != len(tensors):
        raise ModelError(
            f"{parts[0]}: {len(tensors)} of the {announced} tensors that its parts should have;"
            " fetch or make them again, with names like x-00001-of-00002.gguf"
        )
    return Header(headers[0].metadata, tensors)


@contextmanager
def named_if_no_model(model: Path) -> Iterator[None]:
    """Turn the ValueError about a value that a header lacks into a ModelError."""
    try:
        yield
    except ValueError as error:
        reason = one_line(first_error(error))
        raise ModelError(
            f"{model}: {reason} in the metadata; is it a language model's GGUF?"
        ) from error


def _remedy(path: Path, otherwise: str = "fetch or make it again") -> str:
    """Return what to do about a file that is not whole: join it, if it is named as a part."""
    if not (cut := _CUT.match(path.name)):
        return otherwise
    whole, mark, count = cut.groups()
    numbers = [f"{part}of{count}" for part in range(1, int(count) + 1)] if count else ["*"]
    return f"join the parts: cat {' '.join(f'{whole}{mark}{part}' for part in numbers)} > {whole}"


def _read_part(path: Path) -> Header:
    try:
        with path.open("rb") as file, _Mapped(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            header, size = _parse(data, path), len(data)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_remedy(path)}") from error
    except ValueError as error:  # also mmap's own about an empty file
        raise ModelError(f"{path}: not a readable GGUF file ({error}); {_remedy(path)}") from error
    needed = max((tensor.start + tensor.size_bytes for tensor in header.tensors), default=0)
    if size < needed:
        raise ModelError(f"{path}: truncated, {size} bytes of at least {needed}; {_remedy(path)}")
    return header


def alignment_of(metadata: Metadata) -> int:
    """Return the bytes of which each tensor's start is a multiple; raises ValueError."""
    given = Header(metadata, []).number("general.alignment", constants.GGUF_DEFAULT_ALIGNMENT)
    if given < 1:
        raise ValueError(f"alignment {given}")
    return given


class _Mapped(mmap.mmap):
    """A mapped file, whose values are taken one after the other."""

    def take(self, count: int) -> bytes:
        if count > len(self) - self.tell():
            raise ValueError("truncated within its header")
        return self.read(count)

    def count(self, size_bytes: int = 8) -> int:
        return int.from_bytes(self.take(size_bytes), "little")

    def text(self) -> bytes:
        return self.take(self.count())

    def values(self, kind: GGUFValueType, count: int) -> Sequence[bytes | int | float | bool]:
        if kind is GGUFValueType.STRING:
            return [self.text() for _ in range(count)]
        layout = np.dtype(GGUFReader.gguf_scalar_to_np[kind]).newbyteorder("<")
        return [*np.frombuffer(self.take(count * layout.itemsize), layout).tolist()]

    def value(self) -> GGUFValue:
        kind = GGUFValueType(self.count(4))
        if kind is not GGUFValueType.ARRAY:
            return GGUFValue(self.values(kind, 1)[0], kind)
        item, count = GGUFValueType(self.count(4)), self.count()
        if item is GGUFValueType.ARRAY:
            raise ValueError("an array of arrays, which llama.cpp does not read either")
        return GGUFValue(self.values(item, count), kind, item)


def _parse(data: _Mapped, path: Path) -> Header:
    if (begin := data[:12])[:4] != b"GGUF":
        written = "fetch it again, or write one from another format with convert_hf_to_gguf.py"
        remedy = _remedy(path, f"{written} of llama.cpp")
        raise ModelError(f"{path}: not a GGUF file, it starts with {begin!r}; {remedy}")
    data.take(4)
    version = data.count(4)
    if version not in (2, 3):
        raise ValueError(f"version {version}, big-endian or unknown; known are 2 and 3")
    tensor_count, value_count = data.count(), data.count()
    metadata = {data.text().decode(): data.value() for _ in range(value_count)}
    tensors = []
    for _ in range(tensor_count):
        name, dimensions = data.text().decode(), data.count(4)
        sizes = tuple(data.count() for _ in range(dimensions))
        number = data.count(4)
        if (kind := _TYPES.get(number)) is None:
            raise ModelError(
                f"{path}: made for another program, as ik_llama.cpp, or another llama.cpp: {name}"
                f" has the unknown type {number}; take a file of another type, as Q4_K_M or Q8_0"
            )
        tensors.append(TensorInfo(name, sizes, kind, path, start=data.count()))
    # Starts are counted from the end of the header.
    alignment = alignment_of(metadata)
    first = -(-data.tell() // alignment) * alignment
    return Header(metadata, [replace(tensor, start=first + tensor.start) for tensor in tensors])


def writer_of(architecture: str, metadata: Metadata) -> GGUFWriter:
    """Return the writer of one file with this metadata, but for empty arrays."""
    writer = GGUFWriter(None, architecture)
    writer.data_alignment = alignment_of(metadata)
    for key, value in metadata.items():
        if key != "general.architecture" and not key.startswith("split.") and value.value != []:
            writer.add_key_value(key, value.value, value.type, value.sub_type)
    return writer


def write_gguf(out: Path, writer: GGUFWriter, tensors: Mapping[TensorInfo, Iterable[Any]]) -> None:
    """Write a GGUF file atomically; `writer` has its metadata and no tensors yet.

    The weights of each tensor, bytes or numpy arrays, are asked for when it is written.
    """
    for info in tensors:
        # The package also requires numpy's type, and ignores it because GGUF's is given: a number.
        unused, number = np.dtype(np.uint16), cast(GGMLQuantizationType, info.type)
        writer.add_tensor_info(info.name, info.dimensions[::-1], unused, info.size_bytes, number)
    with written_whole(out) as unfinished:
        with closing(writer):
            writer.write_header_to_file(unfinished)
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
        with unfinished.open("ab") as file:
            for pieces in ((), *tensors.values()):  # first the end of the header is aligned
                file.writelines(pieces)
                file.write(bytes(-file.tell() % writer.data_alignment))
