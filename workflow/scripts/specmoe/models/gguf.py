"""Read what a GGUF file says about itself, without loading its weights.

The header is parsed here rather than by `gguf.GGUFReader`, which builds several numpy arrays for
each of a real vocabulary's 248 320 tokens; a card of a real model must not take minutes.

Format: ggml's docs/gguf.md, versions 2 and 3.
"""

import hashlib
import mmap
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from pathlib import Path
from typing import Final

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, LlamaFileType

from specmoe.config.models import Family
from specmoe.errors import ModelError
from specmoe.files import digest_of_parts, engine_path, parts_of, sha256_of

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_DEFAULT_ALIGNMENT: Final = 32
# How far the parameters of a file may be from its family's, as published: some are rounded.
_PARAMETERS_TOLERANCE: Final = 0.02
_BLOCK: Final = re.compile(r"blk\.(\d+)\.")
_SCALARS: Final = {
    GGUFValueType.UINT8: struct.Struct("<B"),
    GGUFValueType.INT8: struct.Struct("<b"),
    GGUFValueType.UINT16: struct.Struct("<H"),
    GGUFValueType.INT16: struct.Struct("<h"),
    GGUFValueType.UINT32: struct.Struct("<I"),
    GGUFValueType.INT32: struct.Struct("<i"),
    GGUFValueType.FLOAT32: struct.Struct("<f"),
    GGUFValueType.BOOL: struct.Struct("<?"),
    GGUFValueType.UINT64: struct.Struct("<Q"),
    GGUFValueType.INT64: struct.Struct("<q"),
    GGUFValueType.FLOAT64: struct.Struct("<d"),
}

Value = int | float | bool | str | list[str] | None
"""A metadata value; None stands for an array of numbers or of arrays, which nobody here needs."""


@dataclass(frozen=True)
class ModelCard:
    """What one model is, as far as a measurement depends on it; all parts of a split one."""

    size_bytes: int
    sha256: str  # of a split model, see `files.digest_of_parts`
    architecture: str
    type: str  # as llama-quantize names it, e.g. Q4_K_M
    parameters_total: int
    parameters_active: int  # multiplied for one token; see `active_parameters`
    tensor_count: int
    tensor_types: dict[str, int]  # GGML type name -> number of tensors
    always_read_bytes: int  # weights that every pass reads, whatever its tokens
    routed_bytes: int  # weights of all routed experts, of which a pass reads some; 0 if dense
    vocabulary_size: int
    vocabulary_sha256: str  # of all tokens in order: models with the same one share a vocabulary
    context_length: int  # tokens
    layers: int  # decoder blocks, without multi-token-prediction blocks
    experts: int  # routed experts of a layer; 0 if dense
    experts_used: int  # of those, visited by one token


@dataclass(frozen=True)
class TensorInfo:
    """One entry of the tensor table of a GGUF file."""

    name: str
    elements: int
    type: GGMLQuantizationType
    offset: int  # bytes from the start of the tensor data

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
class _Header:
    metadata: dict[str, Value]
    tensors: list[TensorInfo]
    data_start: int = 0  # bytes from the start of the file

    def number(self, key: str, default: int | None = None) -> int:
        value = self.metadata.get(key, default)
        if not isinstance(value, int):
            raise ValueError(f"no whole number under {key!r}")
        return value

    def text(self, key: str) -> str:
        value = self.metadata.get(key)
        if not isinstance(value, str):
            raise ValueError(f"no text under {key!r}")
        return value

    def tokens(self) -> list[str]:
        value = self.metadata.get("tokenizer.ggml.tokens")
        if not isinstance(value, list):
            raise ValueError("no vocabulary")
        return value


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

    def scalar(self, kind: GGUFValueType) -> int | float | bool:
        layout = _SCALARS[kind]
        (value,) = layout.unpack(self.take(layout.size))
        assert isinstance(value, int | float)
        return value

    def count(self) -> int:
        return int(self.scalar(GGUFValueType.UINT64))

    def whole(self) -> int:
        return int(self.scalar(GGUFValueType.UINT32))

    def text(self) -> str:
        # Vocabularies may hold tokens that are no valid UTF-8; they must still compare.
        return self.take(self.count()).decode("utf-8", "surrogateescape")

    def value(self, kind: GGUFValueType) -> Value:
        if kind is GGUFValueType.STRING:
            return self.text()
        if kind is not GGUFValueType.ARRAY:
            return self.scalar(kind)
        item, count = GGUFValueType(self.whole()), self.count()
        if item is GGUFValueType.STRING:
            return [self.text() for _ in range(count)]
        if item is GGUFValueType.ARRAY:
            for _ in range(count):
                self.value(item)
        else:
            self.take(count * _SCALARS[item].size)
        return None


def read_card(path: Path, sha256: str | None = None) -> ModelCard:
    """Return the card of a model, split or whole.

    Reads the whole file once, for its digest, unless that is given. Raises ModelError if a file is
    missing, not GGUF, truncated, or not the part of the model that its name says.
    """
    parts = _parts(path)
    headers = [_read_header(part) for part in parts]
    tensors = [tensor for header in headers for tensor in header.tensors]
    whole = _Header(headers[0].metadata, tensors)
    try:
        _check_parts(parts, headers)
        digest = sha256 or digest_of_parts([sha256_of(part) for part in parts])
        return _card(whole, digest, sum(part.stat().st_size for part in parts))
    except ValueError as error:
        raise ModelError(
            f"{path}: {error} in the metadata; is it a language model's GGUF?"
        ) from error


def check_family(card: ModelCard, family: Family, path: Path) -> None:
    """Make sure that a model is of the network the configuration says; raises ModelError if not."""
    known = {
        "architecture": (card.architecture, family.architecture),
        "vocabulary": (card.vocabulary_size, family.vocabulary),
        "layers": (card.layers, family.layers),
        "experts": (card.experts, family.experts),
        "tensors": (card.tensor_count, family.tensors or card.tensor_count),
    }
    wrong = [f"{what} {has}, not {of}" for what, (has, of) in known.items() if has != of]
    distance = abs(card.parameters_total - family.parameters)
    if distance > _PARAMETERS_TOLERANCE * family.parameters:
        wrong.append(f"parameters {card.parameters_total}, not about {family.parameters:.0f}")
    if wrong:
        raise ModelError(
            f"{path}: not of the family that the config names: {'; '.join(wrong)};"
            " correct the model's file or its family"
        )


def active_parameters(
    tensors: Sequence[TensorInfo], layers: int, experts: int, experts_used: int
) -> int:
    """Return how many parameters are multiplied for one token.

    Routed experts count by the share one token visits; the embedding table counts only where it
    is the output matrix too.
    """
    running = list(_multiplied(tensors, layers))
    routed = sum(tensor.elements for tensor in running if tensor.is_routed)
    always = sum(tensor.elements for tensor in running if not tensor.is_routed)
    return always + (routed * experts_used // experts if experts else 0)


def check_same_vocabulary(target: Path, draft: Path) -> None:
    """Make sure that a token id means the same to both models.

    llama-server only logs a mismatch, and runs on without speculative decoding. Raises ModelError
    if the vocabularies differ or a file cannot be read.
    """
    vocabularies = []
    for path in (target, draft):
        try:
            vocabularies.append(_read_header(_parts(path)[0]).tokens())
        except ValueError as error:
            raise ModelError(f"{path}: {error}; a target and its draft need one each") from error
    for token, (ours, theirs) in enumerate(zip_longest(*vocabularies)):
        if ours != theirs:
            raise ModelError(
                f"{draft} cannot draft for {target}: their vocabularies differ from token {token} "
                f"on ({len(vocabularies[1])} and {len(vocabularies[0])} tokens); "
                "choose a draft of the target's own family"
            )


def _parts(path: Path) -> list[Path]:
    first = engine_path(path)
    return [first.with_name(name) for name in parts_of(first.name)]


def _check_parts(parts: Sequence[Path], headers: Sequence[_Header]) -> None:
    """Check what llama.cpp checks of a split model (src/llama-model-loader.cpp)."""
    by_name = len(parts)
    for number, (part, header) in enumerate(zip(parts, headers, strict=True), start=1):
        # Joining parts leaves a count of 0.
        says = header.number("split.no", 0) + 1, header.number("split.count", 1) or 1
        if says != (number, by_name):
            raise ModelError(
                f"{part}: part {says[0]} of {says[1]} by its metadata, {number} of {by_name} by its"
                " name; llama.cpp finds parts by names like x-00001-of-00002.gguf"
            )
    tensors = sum(len(header.tensors) for header in headers)
    if headers[0].metadata.get("split.tensors.count", tensors) != tensors:
        raise ModelError(f"{parts[0]}: its parts are of different models; fetch or make them again")


def _vocabulary_sha256(tokens: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        content = token.encode("utf-8", "surrogateescape")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _card(header: _Header, sha256: str, size_bytes: int) -> ModelCard:
    architecture = header.text("general.architecture")
    predictors = header.number(f"{architecture}.nextn_predict_layers", 0)
    experts = header.number(f"{architecture}.expert_count", 0)
    used = header.number(f"{architecture}.expert_used_count", 0)
    layers = header.number(f"{architecture}.block_count") - predictors
    running = list(_multiplied(header.tensors, layers))
    return ModelCard(
        size_bytes=size_bytes,
        sha256=sha256,
        architecture=architecture,
        type=_file_type(header),
        parameters_total=sum(tensor.elements for tensor in header.tensors),
        parameters_active=active_parameters(header.tensors, layers, experts, used),
        tensor_count=len(header.tensors),
        tensor_types=dict(sorted(Counter(t.type.name for t in header.tensors).items())),
        always_read_bytes=sum(t.size_bytes for t in running if not t.is_routed),
        routed_bytes=sum(t.size_bytes for t in running if t.is_routed),
        vocabulary_size=len(header.tokens()),
        vocabulary_sha256=_vocabulary_sha256(header.tokens()),
        context_length=header.number(f"{architecture}.context_length"),
        layers=layers,
        experts=experts,
        experts_used=used,
    )


def _file_type(header: _Header) -> str:
    try:
        return LlamaFileType(header.number("general.file_type")).name.removeprefix("MOSTLY_")
    except ValueError:
        return "unknown"


def _multiplied(tensors: Sequence[TensorInfo], layers: int) -> Iterator[TensorInfo]:
    """Yield the tensors that ordinary decoding multiplies with.

    One row of the embedding table is looked up, not multiplied, unless the table is the output
    matrix too. Blocks after the last layer predict further tokens; ordinary decoding skips them.
    """
    tied = all(tensor.name != "output.weight" for tensor in tensors)
    for tensor in tensors:
        block = _BLOCK.match(tensor.name)
        skipped = block is not None and int(block[1]) >= layers
        if not skipped and (tied or tensor.name != "token_embd.weight"):
            yield tensor


def _read_header(path: Path) -> _Header:
    """Parse a file's header, and check that the tensor data it announces is all there."""
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


def _parse(data: mmap.mmap) -> _Header:
    cursor = _Cursor(data)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not start with 'GGUF'")
    version = cursor.whole()
    if version not in _VERSIONS:
        raise ValueError(f"version {version}, big-endian or unknown; known are 2 and 3")
    tensor_count, value_count = cursor.count(), cursor.count()
    metadata = {}
    for _ in range(value_count):
        key = cursor.text()
        metadata[key] = cursor.value(GGUFValueType(cursor.whole()))
    tensors = [_tensor(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"alignment {alignment!r}")
    return _Header(metadata, tensors, -(-cursor.position // alignment) * alignment)


def _tensor(cursor: _Cursor) -> TensorInfo:
    name = cursor.text()
    elements = prod(cursor.count() for _ in range(cursor.whole()))
    kind = GGMLQuantizationType(cursor.whole())
    return TensorInfo(name, elements, kind, cursor.count())
