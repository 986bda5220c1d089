"""Reading GGUF files: cards counted by hand, and one clear line for every damaged file."""

import hashlib
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe import synthetic
from specmoe.errors import ModelError
from specmoe.gguf_file import TensorInfo, active_parameters, check_same_vocabulary, read_card
from specmoe.recipe import Recipe
from specmoe.synthetic import write_model

from ..recipes import TINY


def write_by_hand(
    path: Path, matrices: dict[str, tuple[int, ...]], numbers: dict[str, int] | None = None
) -> None:
    """Write a model of zeros with the given tensors and the least metadata a card needs."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(128)
    writer.add_token_list(["a", "b", "c"])
    for key, number in (numbers or {}).items():
        writer.add_uint32(key, number)
    for name, shape in matrices.items():
        writer.add_tensor(name, np.zeros(shape, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    path = tmp_path / "dense.gguf"
    write_model(path, TINY)
    return path


def test_a_card_names_size_digest_and_shape(dense: Path) -> None:
    card = read_card(dense)
    assert card.size_bytes == dense.stat().st_size
    assert card.sha256 == hashlib.sha256(dense.read_bytes()).hexdigest()
    assert card.architecture == "qwen35"
    assert (card.layers, card.experts, card.experts_used) == (4, 0, 0)
    assert (card.vocabulary_size, card.context_length) == (384, 4096)


def test_a_card_agrees_with_the_reference_reader(dense: Path) -> None:
    card, reference = read_card(dense), gguf.GGUFReader(dense).tensors
    assert card.tensor_count == len(reference) == sum(card.tensor_types.values())
    assert card.parameters_total == sum(int(tensor.n_elements) for tensor in reference)
    assert card.tensor_types["F16"] == sum(t.tensor_type.name == "F16" for t in reference)


def test_the_embedding_table_is_not_multiplied_where_there_is_an_output_matrix(
    tmp_path: Path,
) -> None:
    path = tmp_path / "untied.gguf"
    write_by_hand(path, {"token_embd.weight": (3, 32), "output.weight": (3, 32)})
    card = read_card(path)
    assert (card.parameters_total, card.parameters_active) == (2 * 96, 96)
    assert (card.always_read_bytes, card.routed_bytes) == (2 * 96, 0)


def test_the_embedding_table_is_multiplied_where_it_is_the_output_matrix(tmp_path: Path) -> None:
    path = tmp_path / "tied.gguf"
    write_by_hand(path, {"token_embd.weight": (3, 32), "blk.0.ffn_up.weight": (5, 32)})
    card = read_card(path)
    assert card.parameters_total == card.parameters_active == 96 + 160


def test_routed_experts_count_by_the_share_that_one_token_visits(tmp_path: Path) -> None:
    path = tmp_path / "moe.gguf"
    write_by_hand(
        path,
        {
            "token_embd.weight": (3, 32),
            "blk.0.ffn_up_exps.weight": (8, 2, 32),
            "blk.0.ffn_up_shexp.weight": (2, 32),
        },
        {"llama.expert_count": 8, "llama.expert_used_count": 2},
    )
    card = read_card(path)
    assert card.parameters_total == 96 + 512 + 64
    assert card.parameters_active == 96 + 512 // 4 + 64
    assert (card.always_read_bytes, card.routed_bytes) == (2 * (96 + 64), 2 * 512)


def test_blocks_that_predict_further_tokens_are_neither_layers_nor_active(tmp_path: Path) -> None:
    path = tmp_path / "predictor.gguf"
    write_by_hand(
        path,
        {
            "token_embd.weight": (3, 32),
            "blk.0.ffn_up.weight": (5, 32),
            "blk.1.ffn_up.weight": (5, 32),
        },
        {"llama.block_count": 2, "llama.nextn_predict_layers": 1},
    )
    card = read_card(path)
    assert card.layers == 1
    assert card.parameters_total - card.parameters_active == 160


def test_the_35b_model_has_3b_active_parameters() -> None:
    shape = Recipe(
        layers=40,
        hidden=2048,
        heads=16,
        kv_heads=2,
        head_size=256,
        ffn=512,
        gdn_value_heads=32,
        gdn_key_heads=16,
        gdn_head_size=128,
        experts=256,
        experts_used=8,
        expert_ffn=512,
        vocabulary=248_320,
    )
    table = [
        TensorInfo(t.name, int(np.prod(t.shape)), gguf.GGMLQuantizationType.F16, 0)
        for t in synthetic.tensors(shape)
    ]
    assert sum(tensor.elements for tensor in table) / 1e9 == pytest.approx(34.66, abs=0.005)
    assert active_parameters(table, 40, 256, 8) / 1e9 == pytest.approx(2.95, abs=0.005)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent\.gguf: no such model file"):
        read_card(tmp_path / "absent.gguf")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"<html>404</html>", "does not start with 'GGUF'"),
        (b"GGUF\x01\x00\x00\x00" + bytes(16), "version 1"),
        (b"GGUF\x03\x00\x00\x00" + bytes(16), "'general.architecture'"),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"odd\.gguf: .*{message}"):
        read_card(path)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read_card(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_file_cut_anywhere_is_refused_with_one_line(dense: Path, data: st.DataObject) -> None:
    whole = dense.read_bytes()
    # The writer pads the last tensor to 32 bytes; no weight is lost when only padding is.
    kept = data.draw(st.integers(0, len(whole) - 32))
    cut = dense.with_name("cut.gguf")
    cut.write_bytes(whole[:kept])
    with pytest.raises(ModelError, match=r"cut\.gguf: ") as caught:
        read_card(cut)
    assert "\n" not in str(caught.value)


def test_a_file_whose_last_weights_are_missing_says_how_many_bytes(dense: Path) -> None:
    size = dense.stat().st_size
    dense.write_bytes(dense.read_bytes()[:-64])
    with pytest.raises(ModelError, match=f"truncated, {size - 64} bytes of at least"):
        read_card(dense)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, 2000), byte=st.integers(0, 255))
def test_a_damaged_header_gives_a_card_or_one_clear_line(
    dense: Path, position: int, byte: int
) -> None:
    content = bytearray(dense.read_bytes())
    content[position] = byte
    damaged = dense.with_name("damaged.gguf")
    damaged.write_bytes(content)
    try:
        read_card(damaged)
    except ModelError as error:
        assert "damaged.gguf" in str(error)
        assert "\n" not in str(error)


def test_one_part_of_a_split_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part.gguf"
    write_by_hand(path, {"token_embd.weight": (3, 32)}, {"split.count": 2})
    with pytest.raises(ModelError, match="one part of several"):
        read_card(path)


def test_models_of_one_family_share_their_vocabulary(tmp_path: Path, dense: Path) -> None:
    larger = tmp_path / "larger.gguf"
    write_model(larger, replace(TINY, layers=8, seed=1))
    check_same_vocabulary(larger, dense)


def test_a_draft_with_other_tokens_is_refused_and_the_first_one_is_named(
    tmp_path: Path, dense: Path
) -> None:
    other = tmp_path / "other.gguf"
    write_by_hand(other, {"token_embd.weight": (3, 32)})
    with pytest.raises(ModelError, match=r"other\.gguf cannot draft for .* from token 0 on"):
        check_same_vocabulary(dense, other)


def test_a_draft_with_more_tokens_is_refused(tmp_path: Path, dense: Path) -> None:
    longer = tmp_path / "longer.gguf"
    write_model(longer, replace(TINY, vocabulary=400))
    with pytest.raises(ModelError, match=r"from token 384 on \(400 and 384 tokens\)"):
        check_same_vocabulary(dense, longer)


def test_a_file_without_a_vocabulary_cannot_be_compared(tmp_path: Path, dense: Path) -> None:
    bare = tmp_path / "bare.gguf"
    writer = gguf.GGUFWriter(bare, "llama")
    writer.add_tensor("token_embd.weight", np.zeros((3, 32), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"bare\.gguf: no vocabulary"):
        check_same_vocabulary(dense, bare)
