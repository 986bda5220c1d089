"""Random weights: their values, which every type stores alike, and the reference decodes."""

import hashlib
from dataclasses import replace

import gguf
import numpy as np
import numpy.typing as npt
import pytest
from gguf.quants import dequantize
from hypothesis import given
from hypothesis import strategies as st

from specmoe.models import random_weights
from specmoe.models.random_weights import Tensor, draw, stored

QUANTIZED = ["Q8_0", "Q4_K"]
MATRIX = Tensor("any", (64, 512), 0.0, 0.05, "F32", "any", silent_rows=(3, 60))
EXPERTS = Tensor("any", (4, 16, 256), 0.0, 0.05, "F32", "any")


def decoded(tensor: Tensor, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return the weights of a quantized tensor, as the reference decodes them."""
    blocks = np.concatenate(list(stored(tensor, seed)))
    weights = dequantize(blocks, gguf.GGMLQuantizationType[tensor.dtype])
    return weights.reshape(tensor.shape)


@pytest.mark.parametrize(
    ("tensor", "digest"),
    [
        (Tensor("any", (5, 7), 0.0, 1.0, "F32", "any"), "d435f94fe20d64252f7273128e578302"),
        (replace(MATRIX, dtype="Q8_0"), "d2dce920ce946011ef2df9c09e0945bc"),
        (replace(MATRIX, dtype="Q4_K"), "ab7160125b70a904a56a247f179008af"),
    ],
)
def test_stored_weights_do_not_change_with_the_versions_of_libraries(tensor, digest):
    content = b"".join(piece.tobytes() for piece in stored(tensor, seed=3))
    assert hashlib.sha256(content).hexdigest().startswith(digest)


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    mean=st.sampled_from([0.0, -3.0]),
    deviation=st.sampled_from([0.01, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_weights_take_sixteen_evenly_spaced_values_about_their_mean(
    rows, columns, mean, deviation, seed
):
    weights = draw(Tensor("any", (rows, columns), mean, deviation, "F32", "any"), seed)
    step = deviation / np.sqrt((16**2 - 1) / 12)
    level = (weights - mean) / step + 7.5
    np.testing.assert_allclose(level, np.round(level), atol=1e-3)
    assert level.min() > -0.5
    assert level.max() < 15.5


@pytest.mark.parametrize("dtype", QUANTIZED)
@given(
    rows=st.integers(1, 6),
    blocks=st.integers(1, 4),
    deviation=st.floats(0.001, 2),
    seed=st.integers(0, 2**31),
)
def test_a_quantized_tensor_stores_what_would_be_drawn_in_single_precision(
    dtype, rows, blocks, deviation, seed
):
    tensor = Tensor("any", (rows, 256 * blocks), 0.0, deviation, dtype, "any")
    # Only the step is rounded, to the eleven bits of half precision.
    np.testing.assert_allclose(decoded(tensor, seed), draw(tensor, seed), rtol=2**-10)


@pytest.mark.parametrize("dtype", QUANTIZED)
def test_silent_rows_are_zero_though_their_bytes_are_random(dtype):
    tensor = replace(MATRIX, dtype=dtype)
    weights = decoded(tensor)
    assert set(np.flatnonzero(~weights.any(axis=1))) == {3, 60}
    blocks = np.concatenate(list(stored(tensor, seed=0)))
    assert len(np.unique(blocks[3])) >= 16


@pytest.mark.parametrize("dtype", QUANTIZED)
@pytest.mark.parametrize("tensor", [MATRIX, EXPERTS])
def test_a_quantized_tensor_is_made_in_pieces_of_any_size(dtype, tensor, monkeypatch):
    tensor = replace(tensor, dtype=dtype)
    whole = decoded(tensor)
    monkeypatch.setattr(random_weights, "_PIECE", 5 * 512)
    pieces = list(stored(tensor, seed=0))
    assert len(pieces) > 5
    assert max(piece.nbytes for piece in pieces) <= 5 * 512 * 34 / 32
    np.testing.assert_array_equal(decoded(tensor), whole)


@pytest.mark.parametrize("dtype", QUANTIZED)
def test_a_scaled_row_is_that_many_times_the_same_numbers(dtype):
    tensor = replace(MATRIX, scaled_rows=((5, 1.5),))
    for kind in (dtype, "F32"):
        weights, own = (decoded(replace(one, dtype=kind)) for one in (tensor, MATRIX))
        np.testing.assert_allclose(weights[5], 1.5 * own[5], rtol=2**-9)
        np.testing.assert_array_equal(np.delete(weights, 5, 0), np.delete(own, 5, 0))
