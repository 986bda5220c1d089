"""Weights of sixteen evenly spaced values as GGML's quantized blocks, without a float copy.

A weight is a level from 0 to 15 and stands for (level - 7.5) * step, with one step a row. Both
types represent that exactly, except that the step is rounded to half precision. Blocks of silent
rows keep their random levels and have a scale of zero: the system might share or compress pages of
zeros, which would then be faster to read than weights.

Layouts: llama.cpp, block_q8_0 and block_q4_K in ggml/src/ggml-common.h, get_scale_min_k4 and
dequantize_row_q4_K in ggml/src/ggml-quants.c.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

# Few enough for four-bit quantization to represent. A model then accepts 78 to 90 % of what its
# own Q4_K_M drafts. With continuous weights it accepts 67 to 69 %, because quantization errors are
# larger than the differences between the members of a family.
LEVELS: Final = 16

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

Levels = npt.NDArray[np.uint8]
"""Shape (rows, columns); columns are a multiple of the weights in a block."""

Steps = npt.NDArray[np.float32]
"""Shape (rows,)."""


def q8_0(levels: Levels, steps: Steps) -> npt.NDArray[np.uint8]:
    """Return the blocks of each row as bytes, 34 for 32 weights."""
    rows, columns = levels.shape
    blocks = np.empty((rows, columns // 32), _Q8_0)
    blocks["d"] = steps[:, None] / 2
    doubled = (levels << 1).view(np.int8)
    blocks["quants"] = (doubled - np.int8(LEVELS - 1)).reshape(rows, -1, 32)
    return blocks.view(np.uint8)


def q8_0_diagonal(rows: int, columns: int, value: float) -> npt.NDArray[np.uint8]:
    """Return the blocks of a matrix that has `value` on its diagonal and zeros elsewhere."""
    blocks = np.zeros((rows, columns // 32), _Q8_0)
    blocks["d"] = value
    diagonal = np.arange(min(rows, columns))
    blocks["quants"][diagonal, diagonal // 32, diagonal % 32] = 1
    return blocks.view(np.uint8)


def q4_k(levels: Levels, steps: Steps) -> npt.NDArray[np.uint8]:
    """Return the blocks of each row as bytes, 144 for 256 weights."""
    rows, columns = levels.shape
    blocks = np.empty((rows, columns // 256), _Q4_K)
    blocks["d"] = blocks["minimum"] = steps[:, None] / 2
    blocks["scales"] = _SCALES
    # A byte holds two weights that are 32 apart.
    halves = levels.reshape(-1, 2, 32)
    blocks["quants"] = (halves[:, 0] | halves[:, 1] << 4).reshape(rows, -1, 128)
    return blocks.view(np.uint8)
