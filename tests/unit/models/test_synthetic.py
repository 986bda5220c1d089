"""Synthetic models: nested families, their vocabulary, and weights that every type stores alike."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest
from gguf.quants import dequantize
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.models import Recipe, families
from specmoe.errors import ModelError
from specmoe.files import sha256_of
from specmoe.models import random_weights
from specmoe.models.gguf import multiplied, of_token, read_info
from specmoe.models.random_weights import Tensor, draw_weights, stored
from specmoe.models.synthetic import byte_level_vocabulary, tensors

from ...recipes import TINY as CORE
from ...recipes import varied, write_models

LARGE = varied(CORE, layers=6)
MOE = varied(LARGE, experts=8, experts_used=2, expert_ffn=32)
FULL = varied(CORE, attention="full", core=0)
FULL_MOE = varied(FULL, layers=3, experts=8, experts_used=2, expert_ffn=32)
Q8 = varied(MOE, dtype="Q8_0")
Q4 = varied(MOE, hidden=256, expert_ffn=256, dtype="Q4_K")


def written(folder: Path, recipe: Recipe) -> dict[str, npt.NDArray[Any]]:
    found = gguf.GGUFReader(write_models(folder, model=recipe)["model"]).tensors
    return {tensor.name: np.array(tensor.data) for tensor in found}


# A draft model of a target with full attention is dense, as the core of an MoE is.
@pytest.mark.parametrize(
    ("small", "large"),
    [
        (CORE, LARGE),
        (varied(CORE, dtype="BF16"), varied(LARGE, dtype="BF16")),
        (varied(FULL, layers=1), FULL_MOE),
    ],
)
def test_a_small_model_is_exactly_the_first_layers_of_a_large_one(tmp_path, small, large):
    small, large = written(tmp_path, small), written(tmp_path, large)
    assert small.keys() < large.keys()
    np.testing.assert_equal(small, {name: large[name] for name in small})


def test_a_moe_is_the_dense_model_and_the_gate_of_its_shared_expert_halves_it(tmp_path):
    dense, moe = written(tmp_path, LARGE), written(tmp_path, MOE)
    mixing = {name: weights for name, weights in dense.items() if "ffn" not in name}
    np.testing.assert_equal(mixing, {name: moe[name] for name in mixing})
    for layer in range(LARGE.layers):
        block = f"blk.{layer}"
        assert not moe[f"{block}.ffn_gate_inp_shexp.weight"].any()  # whose sigmoid is one half
        for name, halved in (("ffn_gate", 1), ("ffn_up", 1), ("ffn_down", 2)):
            shared = moe[f"{block}.{name}_shexp.weight"] / np.float16(halved)
            np.testing.assert_array_equal(shared, dense[f"{block}.{name}.weight"])


@pytest.mark.parametrize(
    ("recipe", "type_", "digest"),
    [
        ("random-8m-f16", "F16", "b9509070b8668ea1"),
        ("random-unrelated-8m-f16", "F16", "fb6e3db535573ff5"),
        (varied(MOE, mtp_blocks=1, chat=True), "F16", "c7f4612dbeb79047"),
        (varied(FULL_MOE, mtp_blocks=1, dtype="BF16", chat=True), "BF16", "775b27062b381be3"),
        (varied(Q8, mtp_blocks=1, chat=True), "Q8_0", "bc2bee579bd7c049"),
        (varied(Q4, tied=True), "Q4_K_S", "2e9c1f2fdfb79cf9"),
    ],
)
def test_a_recipe_gives_the_file_that_it_always_gave(tmp_path, study, recipe, type_, digest):
    if isinstance(recipe, str):
        recipe = Recipe(**study["model_sets"]["synthetic"][recipe]["recipe"])
    model = write_models(tmp_path, model=recipe)["model"]
    assert read_info(model).type == type_
    assert sha256_of(model).startswith(digest)


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        *((f"random-{size}-q8", None) for size in ("0.8b", "2b", "4b", "9b")),
        ("random-35b-a3b-q8", 36.9),
        ("random-35b-a3b-mtp-q4", 20.8),
    ],
)
def test_a_true_shape_is_that_of_its_family_and_has_the_size_of_its_type(study, model, gigabytes):
    entry = study["model_sets"]["true_shape"][model]
    shape, family = Recipe(**entry["recipe"]), families()[entry["family"]]
    announced = [tensor.info for tensor in tensors(shape)]
    if gigabytes:
        size = sum(tensor.size_bytes for tensor in announced)
        assert size / 1e9 == pytest.approx(gigabytes, abs=0.1)
    assert family.parameters == sum(tensor.elements for tensor in announced)
    visited = Fraction(shape.experts_used, shape.experts or 1)
    active = of_token(multiplied(announced, shape.layers), "elements", visited)
    assert family.parameters_active == active
    assert family.tensors == len(announced)
    for name in ("layers", "vocabulary", "experts", "experts_used"):
        assert getattr(family, name) == getattr(shape, name)


def test_a_vocabulary_has_the_size_asked_for_and_no_token_twice_or_is_refused():
    for size in (500, 248_320):
        tokens, types, _, end = byte_level_vocabulary(size)
        assert len(tokens) == len(set(tokens)) == len(types) == size
        assert types[end] == gguf.TokenType.CONTROL
    with pytest.raises(ModelError, match="vocabulary must be at least"):
        byte_level_vocabulary(200)  # no room for all bytes


QUANTIZED = ["Q8_0", "Q4_K"]
MATRIX = Tensor("any", (64, 512), 0.0, 0.05, "F32", "any", silent_rows=(3, 60))
EXPERTS = Tensor("any", (4, 16, 256), 0.0, 0.05, "F32", "any")


def decoded(tensor: Tensor, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return the weights of a quantized tensor, as the reference decodes them."""
    blocks = np.concatenate(list(stored(tensor, seed)))
    return dequantize(blocks, gguf.GGMLQuantizationType[tensor.dtype]).reshape(tensor.shape)


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
    tensor = Tensor("any", (rows, 256 * blocks), 0.0, deviation, dtype, "any", silent_rows=(0,))
    # Only the step is rounded, to the eleven bits of half precision.
    np.testing.assert_allclose(decoded(tensor, seed), draw_weights(tensor, seed), rtol=2**-10)
    stream = np.concatenate(list(stored(tensor, seed)))
    assert len(np.unique(stream[0])) >= 16  # silent, but no zeros


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
