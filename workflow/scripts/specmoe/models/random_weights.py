"""Random weights of a tensor, and how a GGUF file stores them.

A weight is one of sixteen evenly spaced values, and every type stores the same network. Q8_0 and
Q4_K are encoded here some rows at a time: the `gguf` package cannot write Q4_K, and would need the
weights of a full-size model as floats. Layouts: llama.cpp, ggml/src/ggml-common.h and
ggml-quants.c.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from specmoe.models.gguf_file import TensorInfo

# Few enough for four-bit quantization to represent. A model then accepts 78 to 90 % of what its
# own Q4_K_M drafts. With continuous weights it accepts 67 to 69 %, because quantization errors are
# larger than the differences between the members of a family.
LEVELS: Final = 16
LEVEL_DEVIATION: Final = sqrt((LEVELS**2 - 1) / 12)  # of uniformly drawn levels

_PIECE: Final = 2**20  # weights encoded at a time; they fit a processor's caches
_Q8_0: Final = np.dtype([("d", "<f2"), ("quants", "i1", 32)])
_Q4_K: Final = np.dtype(
    [("d", "<f2"), ("minimum", "<f2"), ("scales", "u1", 12), ("quants", "u1", 128)]
)
# A Q4_K weight is d * scale * level - minimum * offset. With d = minimum = step / 2, this scale
# and offset in all eight sub-blocks put the middle of the levels at zero.
_SCALE: Final = 2
_OFFSET: Final = LEVELS - 1
# Scales and offsets of the first four sub-blocks, then both nibbles of each of the other four.
_SCALES: Final = [_SCALE] * 4 + [_OFFSET] * 4 + [_SCALE | _OFFSET << 4] * 4


@dataclass(frozen=True)
class Tensor:
    """One tensor to draw: its weights are uniform with this mean and standard deviation."""

    name: str  # as llama.cpp looks it up
    shape: tuple[int, ...]  # numpy order: the row, contiguous in memory, comes last
    mean: float  # 0 if quantized
    deviation: float
    dtype: Literal["F32", "F16", "BF16", "Q8_0", "Q4_K"]
    drawn_as: str  # with the seed and the shape it determines the random numbers
    silent_rows: tuple[int, ...] = ()  # rows set to zero
    scaled_rows: tuple[tuple[int, float], ...] = ()  # rows, and what they are multiplied by
    diagonal: float = 0.0  # if not 0, the weights are this on the diagonal, 0 elsewhere, not drawn

    @property
    def info(self) -> TensorInfo:
        """The tensor's entry in a file."""
        return TensorInfo(self.name, self.shape[::-1], GGMLQuantizationType[self.dtype])


def draw_weights(tensor: Tensor, seed: int) -> npt.NDArray[np.float32]:
    """Return the weights of one tensor; they depend only on the arguments.

    The random bits are shaped here, because numpy's distributions may change between its versions
    (NEP 19).
    """
    if tensor.diagonal:
        return np.float32(tensor.diagonal) * np.eye(*tensor.shape, dtype=np.float32)
    weights = np.full(tensor.shape, tensor.mean, dtype=np.float32)
    if tensor.deviation:
        levels = _levels(_stream(tensor, seed), prod(tensor.shape)).reshape(tensor.shape)
        steps = levels.astype(np.float32) - np.float32((LEVELS - 1) / 2)
        weights += steps * np.float32(tensor.deviation / LEVEL_DEVIATION)
    _change_rows(weights, tensor)
    return weights


def stored(tensor: Tensor, seed: int) -> Iterator[npt.NDArray[Any]]:
    """Yield the tensor's weights as a file stores them, in consecutive pieces.

    Encoded here are the weights of `draw_weights`, without drawing all of them at once. A
    step is what a level is worth in a row, rounded to half: a weight is (level - 7.5) * step.
    Blocks of silent rows keep random levels with a scale of zero: pages of zeros might be shared or
    compressed, and be faster to read than weights.
    """
    *outer, columns = tensor.shape
    if tensor.dtype not in ("Q8_0", "Q4_K"):
        yield quantize(draw_weights(tensor, seed), GGMLQuantizationType[tensor.dtype])
        return
    if tensor.diagonal:
        blocks, at = np.zeros((*outer, columns // 32), _Q8_0), np.arange(min(tensor.shape))
        blocks["d"] = tensor.diagonal
        blocks["quants"][at, at // 32, at % 32] = 1
        yield blocks.view(np.uint8)
        return
    steps = np.full(prod(outer), tensor.deviation / LEVEL_DEVIATION, dtype=np.float32)
    _change_rows(steps, tensor)
    layout, of_block = (_Q8_0, 32) if tensor.dtype == "Q8_0" else (_Q4_K, 256)
    stream, rows = _stream(tensor, seed), max(_PIECE // columns, 1)
    for first in range(0, len(steps), rows):
        piece = steps[first : first + rows]
        levels = _levels(stream, len(piece) * columns)
        blocks = np.empty((len(piece), columns // of_block), layout)
        blocks["d"] = piece[:, None] / 2
        if tensor.dtype == "Q8_0":
            doubled = (levels << 1).view(np.int8)
            blocks["quants"] = (doubled - np.int8(LEVELS - 1)).reshape(*blocks.shape, 32)
        else:
            blocks["minimum"], blocks["scales"] = blocks["d"], _SCALES
            # A byte holds two weights that are 32 apart.
            halves = levels.reshape(-1, 2, 32)
            blocks["quants"] = (halves[:, 0] | halves[:, 1] << 4).reshape(*blocks.shape, 128)
        yield blocks.view(np.uint8)


def _change_rows(rows: npt.NDArray[np.float32], tensor: Tensor) -> None:
    """Silence and scale rows of weights, or what their levels are worth, in place."""
    rows[list(tensor.silent_rows)] = 0
    for row, factor in tensor.scaled_rows:
        rows[row] *= np.float32(factor)


def _stream(tensor: Tensor, seed: int) -> np.random.SFC64:
    key = f"{seed}/{tensor.drawn_as}/{tensor.shape}"
    entropy = int.from_bytes(hashlib.sha256(key.encode()).digest(), "little")
    return np.random.SFC64(np.random.SeedSequence(entropy))


def _levels(stream: np.random.SFC64, count: int) -> npt.NDArray[np.uint8]:
    """Draw the next levels, from 0 to 15; the stream advances by a multiple of eight."""
    words = stream.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count] & np.uint8(LEVELS - 1)
