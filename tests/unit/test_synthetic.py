"""Synthetic models: what is drawn, what nests in what, and what the file holds."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe import synthetic
from specmoe.errors import ModelError
from specmoe.recipe import Recipe
from specmoe.synthetic import Tensor, byte_level_vocabulary, draw, tensors, write_model

from ..recipes import TINY as CORE

LARGE = replace(CORE, layers=6)
MOE = replace(LARGE, experts=8, experts_used=2, expert_ffn=32)


def stored(path: Path) -> dict[str, npt.NDArray[Any]]:
    return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}


def written(folder: Path, recipe: Recipe) -> dict[str, npt.NDArray[Any]]:
    write_model(folder / "model.gguf", recipe)
    return stored(folder / "model.gguf")


def planned(recipe: Recipe) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in tensors(recipe)}


@pytest.mark.parametrize("recipe", [CORE, MOE])
def test_the_same_recipe_gives_the_same_bytes(tmp_path: Path, recipe: Recipe) -> None:
    write_model(tmp_path / "one.gguf", recipe)
    write_model(tmp_path / "two.gguf", recipe)
    assert (tmp_path / "one.gguf").read_bytes() == (tmp_path / "two.gguf").read_bytes()


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    one, two = written(tmp_path, CORE), written(tmp_path, replace(CORE, seed=1))
    assert not np.array_equal(one["output.weight"], two["output.weight"])


def test_random_weights_do_not_change_with_the_versions_of_libraries() -> None:
    tensor = Tensor("any", (5, 7), 0.0, 1.0, "F32", "any")
    digest = hashlib.sha256(draw(tensor, seed=3).astype("<f4").tobytes()).hexdigest()
    assert digest == "d435f94fe20d64252f7273128e578302b1499c8cf16cd9eb6504d4c01f646b10"


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_a_small_model_is_exactly_the_first_layers_of_a_large_one(
    tmp_path: Path, dtype: Literal["F16", "BF16"]
) -> None:
    small = written(tmp_path, replace(CORE, dtype=dtype))
    large = written(tmp_path, replace(LARGE, dtype=dtype))
    assert small.keys() < large.keys()
    for name, weights in small.items():
        np.testing.assert_array_equal(weights, large[name], err_msg=name)


def test_the_shared_expert_is_the_dense_feed_forward_once_its_gate_has_halved_it(
    tmp_path: Path,
) -> None:
    dense, moe = written(tmp_path, LARGE), written(tmp_path, MOE)
    for layer in range(LARGE.layers):
        block = f"blk.{layer}"
        gate = moe[f"{block}.ffn_gate_inp_shexp.weight"].astype(np.float32)
        sigmoid = 1 / (1 + np.exp(-gate))
        assert np.all(sigmoid == 0.5)
        for name, halved in (("ffn_gate", 1), ("ffn_up", 1), ("ffn_down", 2)):
            shared = moe[f"{block}.{name}_shexp.weight"] / np.float16(halved)
            np.testing.assert_array_equal(shared, dense[f"{block}.{name}.weight"])


def test_all_but_the_feed_forward_is_the_same_in_a_dense_model_and_in_a_moe(
    tmp_path: Path,
) -> None:
    dense, moe = written(tmp_path, LARGE), written(tmp_path, MOE)
    for name in dense:
        if "ffn" not in name:
            np.testing.assert_array_equal(dense[name], moe[name], err_msg=name)


def test_layers_after_the_core_write_ever_smaller_updates() -> None:
    plan = planned(replace(CORE, layers=9, epsilon=0.1))
    core = plan["blk.0.ffn_down.weight"].deviation
    strengths = [plan[f"blk.{layer}.ffn_down.weight"].deviation / core for layer in range(9)]
    assert strengths == pytest.approx([1, 1, 1, 1, 0.1, 0.1 * 4 / 5, 0.1 * 4 / 6, 0.4 / 7, 0.05])
    for name in ("attn_output", "ffn_down"):
        assert plan[f"blk.7.{name}.weight"].deviation == pytest.approx(
            plan[f"blk.3.{name}.weight"].deviation * 0.4 / 7
        )
    ratio = plan["blk.4.ssm_out.weight"].deviation / plan["blk.0.ssm_out.weight"].deviation
    assert ratio == pytest.approx(0.1)


def test_epsilon_zero_silences_every_layer_after_the_core() -> None:
    plan = planned(replace(LARGE, epsilon=0.0))
    for name in ("blk.4.ssm_out.weight", "blk.5.ffn_down.weight"):
        assert not draw(plan[name], seed=0).any()


def test_routed_experts_have_a_strength_of_their_own_in_every_layer() -> None:
    plan = planned(replace(MOE, epsilon=0.5, routed_epsilon=0.01))
    full = planned(replace(MOE, epsilon=0.5, routed_epsilon=1.0))
    for layer in range(MOE.layers):
        name = f"blk.{layer}.ffn_down_exps.weight"
        assert plan[name].deviation == pytest.approx(0.01 * full[name].deviation)


def test_the_last_of_every_four_layers_has_full_attention() -> None:
    plan = planned(replace(CORE, layers=8))
    attention = {int(name.split(".")[1]) for name in plan if name.endswith("attn_q.weight")}
    recurrent = {int(name.split(".")[1]) for name in plan if name.endswith("ssm_out.weight")}
    assert attention == {3, 7}
    assert recurrent == {0, 1, 2, 4, 5, 6}


def test_sizes_that_are_multiples_of_256_give_rows_that_every_quantization_can_pack() -> None:
    recipe = replace(
        MOE, hidden=256, heads=4, head_size=64, ffn=512, gdn_head_size=128, expert_ffn=256
    )
    matrices = [tensor for tensor in tensors(recipe) if tensor.dtype != "F32"]
    assert matrices
    assert all(tensor.shape[-1] % 256 == 0 for tensor in matrices)


def test_a_model_writes_printable_ascii_and_never_the_end_of_text(tmp_path: Path) -> None:
    vocabulary = byte_level_vocabulary(CORE.vocabulary)
    head = written(tmp_path, CORE)["output.weight"]
    can_be_written = {vocabulary.tokens[row] for row in np.flatnonzero(head.any(axis=1))}
    assert {"A", "z", "Ġ", "Ċ", "Ġthe", "Ġreturn"} <= can_be_written
    assert vocabulary.tokens[vocabulary.end_of_text] not in can_be_written
    assert "ä" not in can_be_written
    assert not any(token.startswith("<|unused") for token in can_be_written)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_matrices_are_stored_in_the_type_asked_for_and_vectors_in_single_precision(
    tmp_path: Path, dtype: Literal["F16", "BF16"]
) -> None:
    write_model(tmp_path / "model.gguf", replace(CORE, dtype=dtype))
    types = {
        tensor.name: tensor.tensor_type.name
        for tensor in gguf.GGUFReader(tmp_path / "model.gguf").tensors
    }
    assert types["blk.0.ffn_up.weight"] == dtype
    assert types["blk.0.attn_norm.weight"] == "F32"


def test_bfloat16_keeps_the_nearest_value() -> None:
    weights = np.array([1.0, -0.375, 1 / 3, 3.1415927], dtype=np.float32)
    bits = synthetic._stored(weights, "BF16").astype(np.uint32) << 16
    np.testing.assert_allclose(bits.view(np.float32), weights, rtol=2**-9)


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"old")

    def full_disk(tensor: Tensor, seed: int) -> npt.NDArray[np.float32]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(synthetic, "draw", full_disk)
    with pytest.raises(ModelError, match=r"not written.*No space left"):
        write_model(path, CORE)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 3, "kv_heads": 2}, "kv_heads must divide heads"),
        ({"gdn_value_heads": 3, "gdn_key_heads": 2}, "gdn_key_heads must divide"),
        ({"head_size": 18}, "head_size must be a multiple of 4"),
        ({"experts": 4, "experts_used": 5, "expert_ffn": 32}, "experts_used must be at most"),
        ({"experts": 4, "experts_used": 2}, "an MoE needs experts_used and expert_ffn"),
    ],
)
def test_a_recipe_that_cannot_be_a_model_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CORE, **change)


def test_every_merge_makes_a_token_from_two_tokens() -> None:
    vocabulary = byte_level_vocabulary(384)
    for merge in vocabulary.merges:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= set(vocabulary.tokens)


def test_the_vocabulary_has_the_size_asked_for_and_no_token_twice() -> None:
    vocabulary = byte_level_vocabulary(500)
    assert len(vocabulary.tokens) == len(set(vocabulary.tokens)) == len(vocabulary.types) == 500
    assert vocabulary.types[vocabulary.end_of_text] == gguf.TokenType.CONTROL


def test_a_vocabulary_too_small_for_all_bytes_is_refused() -> None:
    with pytest.raises(ModelError, match="vocabulary must be at least"):
        byte_level_vocabulary(200)


@given(st.binary())
def test_any_bytes_can_be_written_as_tokens(data: bytes) -> None:
    symbols = sorted(synthetic._byte_symbols(), key=_byte_of)
    assert {symbols[byte] for byte in data} <= set(byte_level_vocabulary(384).tokens)


def _byte_of(symbol: str) -> int:
    """Undo GPT-2's mapping: shifted code points stand for the bytes that do not print."""
    unprintable = [*range(0x21), *range(0x7F, 0xA1), 0xAD]
    return unprintable[ord(symbol) - 256] if ord(symbol) >= 256 else ord(symbol)


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    mean=st.sampled_from([0.0, -3.0]),
    deviation=st.sampled_from([0.01, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_weights_take_sixteen_evenly_spaced_values_about_their_mean(
    rows: int, columns: int, mean: float, deviation: float, seed: int
) -> None:
    weights = draw(Tensor("any", (rows, columns), mean, deviation, "F32", "any"), seed)
    step = deviation / np.sqrt((16**2 - 1) / 12)
    level = (weights - mean) / step + 7.5
    np.testing.assert_allclose(level, np.round(level), atol=1e-3)
    assert level.min() > -0.5
    assert level.max() < 15.5


def test_a_tensor_drawn_under_another_name_or_shape_is_another_tensor() -> None:
    tensor = Tensor("any", (8, 8), 0.0, 1.0, "F32", "any")
    weights = draw(tensor, seed=0)
    assert not np.array_equal(weights, draw(replace(tensor, drawn_as="other"), seed=0))
    longer = draw(replace(tensor, shape=(16, 8)), seed=0)
    assert not np.array_equal(weights, longer[:8])
    np.testing.assert_array_equal(weights, draw(replace(tensor, name="renamed"), seed=0))
