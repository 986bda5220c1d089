"""Reading GGUF files: cards counted by hand, and one clear line for every damaged file."""

import hashlib
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe.config.models import Family
from specmoe.errors import ModelError
from specmoe.files import link
from specmoe.models.gguf import (
    check_family,
    check_same_vocabulary,
    read_card,
)
from specmoe.models.synthetic import write_model

from ...recipes import TINY
from ...splitting import split_model


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


@pytest.fixture
def parts(tmp_path: Path, dense: Path) -> list[Path]:
    return split_model(dense, tmp_path, "split", 3)


def test_a_split_model_has_the_card_of_the_whole_one(dense: Path, parts: list[Path]) -> None:
    whole, split = read_card(dense), read_card(parts[0])
    assert split.size_bytes == sum(part.stat().st_size for part in parts)
    lines = "".join(f"{hashlib.sha256(part.read_bytes()).hexdigest()}\n" for part in parts)
    assert split.sha256 == hashlib.sha256(lines.encode()).hexdigest()
    assert replace(split, size_bytes=whole.size_bytes, sha256=whole.sha256) == whole


def test_a_split_model_is_read_through_its_link(tmp_path: Path, parts: list[Path]) -> None:
    link(parts[0], tmp_path / "model.gguf")
    assert read_card(tmp_path / "model.gguf") == read_card(parts[0])


def test_a_missing_part_is_named(parts: list[Path]) -> None:
    parts[1].unlink()
    with pytest.raises(ModelError, match=rf"{parts[1].name}: no such model file"):
        read_card(parts[0])


def test_a_truncated_part_is_named(parts: list[Path]) -> None:
    parts[2].write_bytes(parts[2].read_bytes()[:-64])
    with pytest.raises(ModelError, match=rf"{parts[2].name}: truncated"):
        read_card(parts[0])


def test_parts_in_the_wrong_order_are_refused(parts: list[Path]) -> None:
    parts[1].rename(parts[1].with_name("kept"))
    parts[2].rename(parts[1])
    parts[1].with_name("kept").rename(parts[2])
    with pytest.raises(ModelError, match=r"part 3 of 3 by its metadata, 2 of 3 by its name"):
        read_card(parts[0])


def test_parts_of_another_model_are_refused(tmp_path: Path, parts: list[Path]) -> None:
    larger = tmp_path / "larger.gguf"
    write_model(larger, replace(TINY, layers=8))
    split_model(larger, tmp_path / "larger", "split", 3)[1].replace(parts[1])
    with pytest.raises(ModelError, match="its parts are of different models"):
        read_card(parts[0])


def test_one_part_under_a_name_of_its_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part.gguf"
    write_by_hand(path, {"token_embd.weight": (3, 32)}, {"split.count": 2})
    with pytest.raises(ModelError, match=r"part 1 of 2 by its metadata, 1 of 1 by its name"):
        read_card(path)


def test_a_model_joined_from_parts_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "joined.gguf"
    write_by_hand(path, {"token_embd.weight": (3, 32)}, {"split.count": 0})
    assert read_card(path).tensor_count == 1


def test_a_digest_that_is_known_is_not_computed_again(dense: Path) -> None:
    assert read_card(dense, "known").sha256 == "known"


def test_the_vocabularys_digest_tells_vocabularies_apart(tmp_path: Path, dense: Path) -> None:
    same, other = tmp_path / "same.gguf", tmp_path / "other.gguf"
    write_model(same, replace(TINY, layers=8, seed=1))
    write_model(other, replace(TINY, vocabulary=400))
    digests = [read_card(path).vocabulary_sha256 for path in (dense, same, other)]
    assert digests[0] == digests[1] != digests[2]


FAMILY = Family(
    architecture="qwen35",
    vocabulary=384,
    layers=4,
    tensors=50,
    parameters=1,
    parameters_active=1,
)


def test_a_model_of_the_family_passes(dense: Path) -> None:
    card = read_card(dense)
    known = {"tensors": card.tensor_count, "parameters": card.parameters_total * 1.019}
    check_family(card, FAMILY.model_copy(update=known), dense)
    check_family(card, FAMILY.model_copy(update=known | {"tensors": None}), dense)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"architecture": "qwen35moe"}, "architecture qwen35, not qwen35moe"),
        ({"vocabulary": 385}, "vocabulary 384, not 385"),
        ({"layers": 5}, "layers 4, not 5"),
        ({"experts": 8}, "experts 0, not 8"),
        ({"tensors": 1}, "tensors {card.tensor_count}, not 1"),
        ({"parameters": 1e9}, "parameters {card.parameters_total}, not about 1000000000"),
    ],
)
def test_a_model_of_another_family_is_refused(
    dense: Path, wrong: dict[str, object], message: str
) -> None:
    card = read_card(dense)
    known = {"tensors": card.tensor_count, "parameters": card.parameters_total}
    with pytest.raises(ModelError) as caught:
        check_family(card, FAMILY.model_copy(update=known | wrong), dense)
    assert str(caught.value) == (
        f"{dense}: not of the family that the config names: {message.format(card=card)};"
        " correct the model's file or its family"
    )


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
