"""Draw a tensor's random weights, and encode them as a GGUF file stores them.

The type does not change the network: Q8_0 and Q4_K store the same levels as F16. These two are
encoded some rows at a time, so that a model of true shape needs little memory.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from specmoe.models.quant_blocks import LEVELS, q4_k, q8_0, q8_0_diagonal

LEVEL_DEVIATION = sqrt((LEVELS**2 - 1) / 12)
"""Standard deviation of uniformly drawn levels."""

_ENCODERS = {"Q8_0": q8_0, "Q4_K": q4_k}
# Weights encoded at a time; they fit a processor's caches.
_PIECE = 2**20


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


def draw(tensor: Tensor, seed: int) -> npt.NDArray[np.float32]:
    """Draw the weights of one tensor; they depend only on the arguments.

    The random bits are shaped here, because numpy's distributions may change between its versions
    (NEP 19), and a model's digest must not depend on the installed version.
    """
    if tensor.diagonal:
        rows, columns = tensor.shape
        return np.float32(tensor.diagonal) * np.eye(rows, columns, dtype=np.float32)
    weights = np.full(tensor.shape, tensor.mean, dtype=np.float32)
    if tensor.deviation:
        levels = _levels(_stream(tensor, seed), prod(tensor.shape)).reshape(tensor.shape)
        steps = levels.astype(np.float32) - np.float32((LEVELS - 1) / 2)
        weights += steps * np.float32(tensor.deviation / LEVEL_DEVIATION)
    weights[list(tensor.silent_rows)] = 0
    for row, factor in tensor.scaled_rows:
        weights[row] *= np.float32(factor)
    return weights


def stored(tensor: Tensor, seed: int) -> Iterator[npt.NDArray[np.generic]]:
    """Yield the tensor's weights as a file stores them, in consecutive pieces."""
    if tensor.diagonal and tensor.dtype == "Q8_0":
        rows, columns = tensor.shape
        yield q8_0_diagonal(rows, columns, tensor.diagonal)
        return
    if tensor.dtype in _ENCODERS:
        yield from _blocks(tensor, seed)
        return
    weights = draw(tensor, seed)
    if tensor.dtype == "F16":
        yield weights.astype(np.float16)
    else:
        yield bfloat16(weights) if tensor.dtype == "BF16" else weights


def bfloat16(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return BF16 bits, rounded to nearest even as ggml does; numpy has no BF16 type."""
    bits = weights.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)


def _blocks(tensor: Tensor, seed: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Encode the weights that `draw` would return, without drawing all of them at once."""
    *outer, columns = tensor.shape
    steps = np.full(prod(outer), tensor.deviation / LEVEL_DEVIATION, dtype=np.float32)
    steps[list(tensor.silent_rows)] = 0
    for row, factor in tensor.scaled_rows:
        steps[row] *= np.float32(factor)
    stream = _stream(tensor, seed)
    rows = max(_PIECE // columns, 1)
    for first in range(0, len(steps), rows):
        piece = steps[first : first + rows]
        levels = _levels(stream, len(piece) * columns).reshape(-1, columns)
        yield _ENCODERS[tensor.dtype](levels, piece)


def _stream(tensor: Tensor, seed: int) -> np.random.SFC64:
    key = f"{seed}/{tensor.drawn_as}/{tensor.shape}"
    entropy = int.from_bytes(hashlib.sha256(key.encode()).digest(), "little")
    return np.random.SFC64(np.random.SeedSequence(entropy))


def _levels(stream: np.random.SFC64, count: int) -> npt.NDArray[np.uint8]:
    """Draw the next numbers from 0 to 15; the stream advances by a multiple of eight."""
    words = stream.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count] & np.uint8(LEVELS - 1)
