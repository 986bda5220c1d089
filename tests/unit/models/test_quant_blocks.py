"""Raw blocks: the weights that the reference decodes from them."""

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from hypothesis import given
from hypothesis import strategies as st

from specmoe.models.quant_blocks import LEVELS, q4_k, q8_0

COLUMNS = 512
TYPES = [(q8_0, gguf.GGMLQuantizationType.Q8_0), (q4_k, gguf.GGMLQuantizationType.Q4_K)]


@pytest.mark.parametrize(("encode", "kind"), TYPES)
@given(
    octets=st.lists(st.binary(min_size=COLUMNS, max_size=COLUMNS), min_size=1, max_size=4),
    exponents=st.lists(st.integers(-12, 12), min_size=4, max_size=4),
)
def test_blocks_hold_every_weight_without_error_if_half_precision_holds_the_step(
    encode, kind, octets, exponents
):
    levels = np.array([np.frombuffer(row, np.uint8) % LEVELS for row in octets])
    steps = np.exp2(np.array(exponents[: len(octets)], np.float32))
    weights = dequantize(encode(levels, steps), kind)
    np.testing.assert_array_equal(weights, (levels - 7.5) * steps[:, None])


@pytest.mark.parametrize(("encode", "kind"), TYPES)
def test_a_row_takes_the_bytes_that_its_type_has(encode, kind):
    blocks = encode(np.zeros((3, COLUMNS), np.uint8), np.ones(3, np.float32))
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    assert blocks.shape == (3, COLUMNS // per_block * block_bytes)
