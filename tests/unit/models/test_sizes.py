"""How large a model is thought to be before it is there."""

from dataclasses import asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.load import load
from specmoe.config.synthetic_recipe import Recipe
from specmoe.errors import ConfigError
from specmoe.models.gguf import ModelCard, read_card
from specmoe.models.sizes import Size, card_of_entry, size_of, size_of_card
from specmoe.models.synthetic import write_model

from ...recipes import SMALL, TINY


@pytest.fixture
def config(study, root):
    return load(study, root)


def test_the_size_of_a_hub_model_is_the_exact_one_before_the_rounded_one(study, root):
    study["model_sets"]["study"]["moe_q4"]["size_bytes"] = 20_600_000_123
    size = size_of("moe_q4", load(study, root), {}, {})
    assert (size.file_bytes, size.basis) == (20_600_000_123, "the config")


def test_what_the_hub_says_comes_before_what_the_config_says(config):
    assert size_of("moe_q4", config, {}, {"moe_q4": 7}).file_bytes == 7


def test_a_token_of_the_moe_reads_what_its_active_parameters_take(config):
    size = size_of("moe_q4", config, {}, {})
    assert size.pass_bytes(1) == pytest.approx(20.6e9 * 2.946 / 34.66, rel=1e-3)


def test_a_model_to_be_quantized_is_estimated_from_its_family(study, root):
    study["campaign"]["models"] = "study_types"
    config = load(study, root)
    assert size_of("moe_q8", config, {}, {}).file_bytes == pytest.approx(
        34.66e9 * 8.5 / 8, rel=1e-3
    )
    assert size_of("35b_bf16", config, {}, {}).file_bytes == pytest.approx(69.32e9, rel=1e-3)


def test_nothing_is_made_up_for_a_model_nobody_knows(study, root):
    entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf"}
    study["model_sets"]["study"]["moe_q4"] = entry
    assert size_of("moe_q4", load(study, root), {}, {}) is None


def test_a_model_without_family_is_taken_for_dense_and_says_so(study, root):
    entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf", "size_gb": 2}
    study["model_sets"]["study"]["moe_q4"] = entry
    size = size_of("moe_q4", load(study, root), {}, {})
    assert size.pass_bytes(9) == 2e9
    assert "taken for dense" in size.basis


@pytest.mark.parametrize("recipe", [TINY, SMALL])
def test_a_recipe_tells_the_size_its_file_will_have(study, root, tmp_path, recipe: Recipe):
    study["model_sets"]["study"]["moe_q4"] = {"kind": "synthetic", "recipe": asdict(recipe)}
    expected = size_of("moe_q4", load(study, root), {}, {}).file_bytes
    write_model(tmp_path / "model.gguf", recipe)
    assert expected == pytest.approx((tmp_path / "model.gguf").stat().st_size, rel=0.2)


def test_a_file_that_is_there_is_its_own_measure(config, tmp_path):
    write_model(tmp_path / "model.gguf", TINY)
    card = read_card(tmp_path / "model.gguf")
    assert size_of("moe_q4", config, {"moe_q4": card}, {}) == size_of_card(card)


@given(st.integers(1, 64), st.integers(1, 8), st.integers(8, 256))
def test_a_wider_pass_reads_more_experts_but_never_more_than_all(width, used, experts):
    size = Size(10, 3.0, 7.0, experts, used, 1, "")
    assert size.pass_bytes(width) <= size.pass_bytes(width + 1) <= 10
    assert size.pass_bytes(1) == pytest.approx(3 + 7 * used / experts)


def test_the_card_of_an_entry_has_what_a_files_has_and_null_for_what_only_a_file_tells(config):
    card = card_of_entry("moe_q4", config)
    assert set(card) == {field.name for field in fields(ModelCard)}
    assert card["size_bytes"] == 20_600_000_000
    assert (card["experts"], card["experts_used"], card["layers"]) == (256, 8, 40)
    assert card["sha256"] is card["tensor_types"] is card["context_length"] is None
    assert size_of_card(ModelCard(**card)).pass_bytes(5) == pytest.approx(
        size_of("moe_q4", config, {}, {}).pass_bytes(5)
    )


@pytest.mark.parametrize(
    ("file", "type_"),
    [
        ("Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("Qwen3.5-4B-Q8_0.gguf", "Q8_0"),
        ("BF16/Qwen3.5-35B-A3B-BF16-00001-of-00002.gguf", "BF16"),
        ("a-IQ4_XS.gguf", "IQ4_XS"),
        ("Qwen3.5-4B.gguf", None),
    ],
)
def test_the_type_of_a_model_is_read_off_its_files_name(study, root, file, type_):
    study["model_sets"]["study"]["moe_q4"]["file"] = file
    if "-of-" in file:
        study["model_sets"]["study"]["moe_q4"]["sha256"] = ["0" * 64, "1" * 64]
    assert card_of_entry("moe_q4", load(study, root))["type"] == type_


def test_a_model_of_which_too_little_is_known_has_no_card_without_its_file(study, root):
    del study["model_sets"]["study"]["moe_q4"]["family"]
    with pytest.raises(ConfigError, match="model 'moe_q4'"):
        card_of_entry("moe_q4", load(study, root))
