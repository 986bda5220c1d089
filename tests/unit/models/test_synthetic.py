"""Synthetic models: their weights, how they nest, and their files."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest
from gguf.quants import dequantize

from specmoe.config.models import Recipe
from specmoe.errors import ModelError
from specmoe.files import sha256_of
from specmoe.models.gguf import active_parameters, read_card
from specmoe.models.random_weights import Tensor
from specmoe.models.synthetic import byte_level_vocabulary, tensors, write_model

from ...recipes import TINY as CORE
from ...recipes import varied

LARGE = varied(CORE, layers=6)
MOE = varied(LARGE, experts=8, experts_used=2, expert_ffn=32)
FULL = varied(CORE, attention="full", core_layers=1)
FULL_MOE = varied(FULL, layers=3, experts=8, experts_used=2, expert_ffn=32)
Q8 = varied(MOE, dtype="Q8_0")
Q4 = varied(MOE, hidden=256, expert_ffn=256, dtype="Q4_K")


def written(folder: Path, recipe: Recipe) -> dict[str, npt.NDArray[Any]]:
    write_model(folder / "model.gguf", recipe)
    found = gguf.GGUFReader(folder / "model.gguf").tensors
    return {tensor.name: np.array(tensor.data) for tensor in found}


def planned(recipe: Recipe) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in tensors(recipe)}


def same(small, large, *, but=()):
    """Make sure that the tensors of one model are in another, with the same weights."""
    for name in small.keys() - set(but):
        np.testing.assert_array_equal(small[name], large[name], err_msg=name)


# A draft of a target with full attention is dense, as the core of an MoE is.
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
    same(small, large)


def test_a_moe_is_the_dense_model_and_the_gate_of_its_shared_expert_halves_it(tmp_path):
    dense, moe = written(tmp_path, LARGE), written(tmp_path, MOE)
    same(dense, moe, but=[name for name in dense if "ffn" in name])
    for layer in range(LARGE.layers):
        block = f"blk.{layer}"
        gate = moe[f"{block}.ffn_gate_inp_shexp.weight"].astype(np.float32)
        sigmoid = 1 / (1 + np.exp(-gate))
        assert np.all(sigmoid == 0.5)
        for name, halved in (("ffn_gate", 1), ("ffn_up", 1), ("ffn_down", 2)):
            shared = moe[f"{block}.{name}_shexp.weight"] / np.float16(halved)
            np.testing.assert_array_equal(shared, dense[f"{block}.{name}.weight"])


@pytest.mark.parametrize(
    ("change", "strengths"),
    [
        ({"layers": 9}, [1, 1, 1, 1, 0.1, 0.1 * 4 / 5, 0.1 * 4 / 6, 0.4 / 7, 0.05]),
        # A core that starts later has weak layers before it too.
        ({"core_first": 3, "core_layers": 1}, [0.1, 0.1, 0.1, 1, 0.1, 0.1 * 4 / 5]),
        ({"epsilon": 0.0}, [1, 1, 1, 1, 0, 0]),
    ],
)
def test_layers_outside_the_core_write_ever_smaller_updates(change, strengths):
    recipe = varied(LARGE, **{"epsilon": 0.1} | change)
    plan, in_core = planned(recipe), planned(varied(recipe, core_first=0, core_layers=9))
    for layer, strength in enumerate(strengths):
        for name in ("ffn_down", "attn_output" if layer % 4 == 3 else "ssm_out"):
            tensor = f"blk.{layer}.{name}.weight"
            assert plan[tensor].deviation == pytest.approx(strength * in_core[tensor].deviation)


@pytest.mark.parametrize("recipe", [LARGE, MOE, FULL_MOE, Q8, varied(CORE, dtype="BF16")])
def test_an_mtp_block_is_the_cores_layer_of_full_attention_once_more(tmp_path, recipe):
    recipe = varied(recipe, mtp_blocks=1)
    model = written(tmp_path, recipe)
    block, layer = f"blk.{recipe.layers}.", "blk.0." if recipe.attention == "full" else "blk.3."
    repeated = {name.removeprefix(layer) for name in model if name.startswith(layer)}
    own = {name.removeprefix(block) for name in model if name.startswith(block)}
    assert own - repeated == {f"nextn.{name}.weight" for name in ("eh_proj", "enorm", "hnorm")}
    assert repeated <= own
    for name in repeated:
        np.testing.assert_array_equal(model[block + name], model[layer + name], err_msg=name)


@pytest.mark.parametrize("recipe", [LARGE, MOE, Q8])
def test_an_mtp_block_reads_the_newest_tokens_embedding_and_changes_nothing_else(tmp_path, recipe):
    without, alone = written(tmp_path, recipe), read_card(tmp_path / "model.gguf")
    with_block = written(tmp_path, varied(recipe, mtp_blocks=1))
    same(without, with_block)
    found = {t.name: t for t in gguf.GGUFReader(tmp_path / "model.gguf").tensors}
    merge = found[f"blk.{recipe.layers}.nextn.eh_proj.weight"]
    expected = np.hstack([np.eye(CORE.hidden), np.zeros((CORE.hidden, CORE.hidden))])
    np.testing.assert_array_equal(dequantize(merge.data, merge.tensor_type), expected)
    card = read_card(tmp_path / "model.gguf")  # on which the block is no layer
    assert (card.layers, card.parameters_active) == (alone.layers, alone.parameters_active)
    assert card.parameters_total > alone.parameters_total


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("dense_0.8b", "b9509070b8668ea192e8daa9228ccf6e9a9f56c98609d90ae9ed7cdcca4eb21d"),
        ("stranger", "fb6e3db535573ff5d724c6f83a74844a4158e76b63b20ab6b33c5145747a3c0c"),
    ],
)
def test_a_recipe_gives_the_weights_that_it_always_gave(tmp_path, study, name, digest):
    recipe = Recipe(**study["model_sets"]["synthetic"][name]["recipe"])
    write_model(tmp_path / "model.gguf", recipe)
    assert sha256_of(tmp_path / "model.gguf") == digest


def test_the_last_of_every_four_layers_has_full_attention_or_all_have():
    plan = planned(varied(CORE, layers=8))
    attention = {int(name.split(".")[1]) for name in plan if name.endswith("attn_q.weight")}
    recurrent = {int(name.split(".")[1]) for name in plan if name.endswith("ssm_out.weight")}
    assert (attention, recurrent) == ({3, 7}, {0, 1, 2, 4, 5, 6})
    plan = planned(FULL_MOE)  # whose core is dense
    layers = range(FULL_MOE.layers)
    assert all(f"blk.{layer}.attn_qkv.weight" in plan for layer in layers)
    assert not any("ssm" in name for name in plan)
    routed = [layer for layer in layers if f"blk.{layer}.ffn_up_exps.weight" in plan]
    dense = [layer for layer in layers if f"blk.{layer}.ffn_up.weight" in plan]
    assert (dense, routed) == ([0], [1, 2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 3}, "layers must be at least 4"),
        ({"heads": 3, "kv_heads": 2}, "kv_heads must divide heads"),
        ({"head_size": 18}, "head_size must be a multiple of 4"),
        ({"experts": 4, "experts_used": 5, "expert_ffn": 32}, "experts_used must be at most"),
        ({"experts": 4, "experts_used": 2}, "an MoE needs experts_used and expert_ffn"),
        ({"core_first": 4}, "core_first must be one of the layers"),
        ({"core_layers": 3, "mtp_blocks": 1}, "MTP block needs a layer of full attention"),
        ({"dtype": "Q8_0", "ffn": 48}, r"Q8_0 needs hidden, ffn, .* to be multiples of 32"),
        ({"dtype": "Q4_K", "hidden": 256}, "Q4_K needs routed experts"),
        (
            {"dtype": "Q4_K", "hidden": 256, "experts": 2, "experts_used": 1, "expert_ffn": 128},
            "hidden and expert_ffn to be multiples of 256",
        ),
    ],
)
def test_a_recipe_that_cannot_be_a_model_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        varied(CORE, **change)


@pytest.mark.parametrize(
    ("recipe", "type_", "large", "small"),
    [
        (MOE, "F16", "F16", "F16"),
        (varied(MOE, dtype="BF16"), "BF16", "BF16", "BF16"),
        (Q8, "Q8_0", "Q8_0", "Q8_0"),
        (Q4, "Q4_K_S", "Q4_K", "Q8_0"),
    ],
)
def test_the_recipes_type_is_that_of_matrices(tmp_path, recipe, type_, large, small):
    write_model(tmp_path / "model.gguf", recipe)
    assert read_card(tmp_path / "model.gguf").type == type_
    found = gguf.GGUFReader(tmp_path / "model.gguf").tensors
    types = {tensor.name: tensor.tensor_type.name for tensor in found}
    for name in ("token_embd", "output", "blk.0.ffn_up_exps"):
        assert types[f"{name}.weight"] == large
    for name in ("blk.3.attn_output", "blk.0.ffn_up_shexp"):
        assert types[f"{name}.weight"] == small
    assert types["blk.0.attn_norm.weight"] == types["blk.0.ffn_gate_inp.weight"] == "F32"


@pytest.mark.parametrize("tied", [False, True])
def test_the_end_of_a_text_alone_differs_in_a_model_that_ends(tmp_path, tied):
    recipe, gain = varied(CORE, tied=tied, hidden=1024), 1.5
    end = byte_level_vocabulary(recipe.vocabulary).end_of_text
    head = "token_embd.weight" if tied else "output.weight"
    endless, ending = (written(tmp_path, varied(recipe, end_gain=gain)) for gain in (0, gain))
    same(endless, ending, but=[head])
    others, rest = (np.delete(one[head], end, 0) for one in (endless, ending))
    np.testing.assert_array_equal(others, rest)
    assert not endless[head][end].any()
    others = others[others.any(axis=1)].astype(np.float32)
    assert ending[head][end].astype(np.float32).std() == pytest.approx(gain * others.std(), rel=0.1)


@pytest.mark.parametrize(
    ("model", "total", "active", "size_gb"),
    [
        ("dense_0.8b", 0.752, 0.752, None),
        ("dense_2b", 1.882, 1.882, None),
        ("dense_4b", 4.206, 4.206, None),
        ("dense_9b", 8.954, 7.937, None),
        ("moe_q8", 34.661, 2.946, 36.9),
        ("moe_q4", 34.661, 2.946, 20.3),
        ("moe_q4_mtp", 35.505, 2.946, 20.8),
    ],
)
def test_a_true_shape_has_the_parameters_of_its_family_and_the_size_of_its_type(
    study, model, total, active, size_gb
):
    shape = Recipe(**study["model_sets"]["true_shape"][model]["recipe"])
    family = study["families"][study["model_sets"]["true_shape"][model]["family"]]
    announced = [tensor.info for tensor in tensors(shape)]
    if size_gb:
        size = sum(tensor.size_bytes for tensor in announced)
        assert size / 1e9 == pytest.approx(size_gb, abs=0.1)
    parameters = sum(tensor.elements for tensor in announced)
    multiplied = active_parameters(announced, shape.layers, shape.experts, shape.experts_used)
    assert (parameters / 1e9, multiplied / 1e9) == pytest.approx((total, active), abs=0.001)
    assert (family["parameters"], family["parameters_active"]) == (parameters, multiplied)
    assert family["tensors"] == len(announced)
    assert (family["layers"], family["vocabulary"]) == (shape.layers, shape.vocabulary)
    experts = family.get("experts", 0), family.get("experts_used", 0)
    assert experts == (shape.experts, shape.experts_used)


TRUE_SIZE = 248_320


def test_every_merge_makes_a_token_from_two_tokens():
    vocabulary = byte_level_vocabulary(384)
    for merge in vocabulary.merges:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= set(vocabulary.tokens)


@pytest.mark.parametrize("size", [500, TRUE_SIZE])
def test_the_vocabulary_has_the_size_asked_for_and_no_token_twice(size):
    vocabulary = byte_level_vocabulary(size)
    assert len(vocabulary.tokens) == len(set(vocabulary.tokens)) == len(vocabulary.types) == size
    assert vocabulary.types[vocabulary.end_of_text] == gguf.TokenType.CONTROL


def test_a_larger_vocabulary_only_adds_tokens_that_nothing_is_encoded_with():
    small, large = byte_level_vocabulary(384), byte_level_vocabulary(500)
    assert large.tokens[:384] == small.tokens
    assert large.merges == small.merges
    assert large.padding == (*small.padding, *range(384, 500))
    assert set(large.unprintable) == {*small.unprintable, *large.padding}


def test_a_vocabulary_too_small_for_all_bytes_is_refused():
    with pytest.raises(ModelError, match="vocabulary must be at least"):
        byte_level_vocabulary(200)
