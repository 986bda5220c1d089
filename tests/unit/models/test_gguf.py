"""Infos of GGUF files, with parameters counted by hand; damaged files are refused in one line."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe.config.models import Family, PathModel
from specmoe.errors import ModelError
from specmoe.files import digest_of_parts, link, sha256_of
from specmoe.models.gguf import check_family, read_info, write_info
from specmoe.models.info import Thinking, load_info, save_info

from ...recipes import TINY, finish, split_model, varied, write_models


@pytest.fixture
def by_hand(tmp_path: Path):
    """Write a model of zeros with the given tensors and the least metadata a model info needs."""

    def write(matrices, numbers=None, template="", architecture="llama", kind="model"):
        path = tmp_path / "made.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_type(kind)
        writer.add_block_count(1)
        writer.add_context_length(128)
        writer.add_token_list(["a", "b", "c", "<think>", "</think>"])
        if template:
            writer.add_chat_template(template)
        for key, number in (numbers or {}).items():
            writer.add_uint32(key, number)
        for name, shape in matrices.items():
            writer.add_tensor(f"{name}.weight", np.zeros(shape, np.float16))
        finish(writer)
        return path

    return write


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return write_models(tmp_path, dense=TINY)["dense"]


def test_an_info_has_what_the_file_and_the_reference_reader_say(dense):
    info, reference = read_info(dense), gguf.GGUFReader(dense).tensors
    assert info.size_bytes == dense.stat().st_size
    assert info.architecture == "qwen35"
    assert (info.layers, info.experts, info.experts_used) == (4, 0, 0)
    assert (info.vocabulary_size, info.context_length) == (384, 4096)
    assert info.tensor_count == len(reference) == sum(info.tensor_types.values())
    assert info.parameters_total == sum(int(tensor.n_elements) for tensor in reference)
    assert info.tensor_types["F16"] == sum(t.tensor_type.name == "F16" for t in reference)


EMBEDDING = {"token_embd": (3, 32)}


def test_the_embedding_table_is_multiplied_only_if_it_is_the_output_matrix_too(by_hand):
    info = read_info(by_hand(EMBEDDING | {"output": (3, 32)}))
    assert (info.parameters_total, info.parameters_active) == (2 * 96, 96)
    assert (info.always_read_bytes, info.routed_bytes) == (2 * 96, 0)
    info = read_info(by_hand(EMBEDDING | {"blk.0.ffn_up": (5, 32)}))
    assert info.parameters_total == info.parameters_active == 96 + 160


OPENS = "{% if enable_thinking %}<think>{% else %}<think></think>{% endif %}"
KEPT = "{{ messages[0].content.split('</think>') | last }}"


@pytest.mark.parametrize(
    ("template", "thinking"),
    [
        ("assistant:", None),
        ("<think>{{ nothing(", None),
        ("{{ raise_exception('no') }}<think>", None),
        ("{{ messages.append.__globals__ }}<think>", None),  # what a sandbox refuses
        ("assistant: <think>\n", Thinking(False, (True, True), 3, 4)),
        (KEPT, Thinking(False, (False, False), 3, 4)),
        (OPENS, Thinking(True, (False, True), 3, 4)),
        ("{% if enable_thinking %} thinking:{% endif %}", Thinking(True, (False, False))),
        ("<|channel|>analysis", Thinking(False, (True, True))),
    ],
)
def test_a_template_is_rendered_both_ways_to_see_whether_it_heeds_thinking(
    by_hand, tmp_path, template, thinking
):
    info = read_info(by_hand(EMBEDDING, template=template))
    assert info.thinking == thinking
    save_info(info, tmp_path / "made.json")
    assert load_info(tmp_path / "made.json") == info


def test_a_template_that_never_ends_is_stopped_in_any_thread(by_hand, monkeypatch):
    monkeypatch.setattr("specmoe.models.gguf._TEMPLATE_S", 0)
    loops = "{% for one in range(99999) %}" * 9 + "{% endfor %}" * 9
    with ThreadPoolExecutor() as pool, pytest.raises(ModelError, match="no chat template that end"):
        pool.submit(read_info, by_hand(EMBEDDING, template=loops)).result()


def test_thinking_lasts_until_its_mark_or_to_the_end():
    def thought(*tokens, opened):
        return Thinking(True, (False, True), begin=3, end=4).thought(tokens, opened=opened)

    assert thought(7, 7, 4, 8, opened=True) == thought(3, 7, 4, 8, opened=False) == 3
    assert thought(7, 7, 7, opened=True) == thought(7, 3, 7, opened=False) == 3
    assert thought(7, 7, 7, opened=False) == 0


def test_routed_experts_count_by_the_share_that_one_token_visits(by_hand):
    experts = {"blk.0.ffn_up_exps": (8, 2, 32), "blk.0.ffn_up_shexp": (2, 32)}
    numbers = {"llama.expert_count": 8, "llama.expert_used_count": 2}
    info = read_info(by_hand(EMBEDDING | experts, numbers))
    assert info.parameters_total == 96 + 512 + 64
    assert info.parameters_active == 96 + 512 // 4 + 64
    assert (info.always_read_bytes, info.routed_bytes) == (2 * (96 + 64), 2 * 512)


def test_blocks_that_predict_further_tokens_are_neither_layers_nor_active(by_hand):
    blocks = {"blk.0.ffn_up": (5, 32), "blk.1.ffn_up": (5, 32), "blk.1.nextn.eh_proj": (1, 32)}
    numbers = {"llama.block_count": 2, "llama.nextn_predict_layers": 1}
    info = read_info(by_hand(EMBEDDING | blocks, numbers))
    assert (info.layers, info.mtp_blocks) == (1, 1)
    assert info.parameters_total - info.parameters_active == 160 + 32
    for lacking, layers in (("blk.1.nextn.eh_proj", 2), ("blk.1.ffn_up", 1)):
        del blocks[lacking]  # what is announced and not there is no MTP block
        info = read_info(by_hand(EMBEDDING | blocks, numbers))
        assert (info.layers, info.mtp_blocks) == (layers, 0)
    with pytest.raises(ModelError, match=r"layers: Input should be .* in the metadata"):
        read_info(by_hand(EMBEDDING, {"llama.block_count": 2**32 - 8}))


def test_an_mtp_block_reads_itself_and_the_output_matrix_for_each_token(by_hand):
    block = {"blk.1.nextn.eh_proj": (1, 32), "blk.1.ffn_up_exps": (8, 2, 32)}
    numbers = {"llama.block_count": 2, "llama.nextn_predict_layers": 1}
    numbers |= {"llama.expert_count": 8, "llama.expert_used_count": 2}
    assert read_info(by_hand(EMBEDDING | block, numbers)).mtp_bytes == 2 * (32 + 512 // 4 + 96)
    tables = {"output": (4, 32), "blk.1.nextn.embed_tokens": (3, 32)}
    assert read_info(by_hand(EMBEDDING | block | tables, numbers)).mtp_bytes == 2 * (160 + 128)
    tables["blk.1.nextn.shared_head_head"] = (6, 32)
    assert read_info(by_hand(EMBEDDING | block | tables, numbers)).mtp_bytes == 2 * (160 + 192)
    assert read_info(by_hand(EMBEDDING)).mtp_bytes is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"<html>404</html>", "not a GGUF file, it starts with b'<html>404</h'"),
        (b"GGUF\x01\x00\x00\x00" + bytes(16), "version 1"),
        (b"GGUF\x03\x00\x00\x00" + bytes(16), "'general.architecture'"),
    ],
)
def test_a_file_that_is_no_model_is_refused_with_the_reason(tmp_path, content, message):
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"odd\.gguf: .*{message}"):
        read_info(path)
    with pytest.raises(ModelError, match="cannot be read"):
        read_info(tmp_path)


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ({"kind": "mmproj"}, "a projector of pictures .* name its model"),
        ({"architecture": "clip"}, "a projector of pictures"),
        ({"kind": "adapter"}, "an adapter .LoRA.; name its model, .* .engine_args: .*lora, FILE"),
        ({"numbers": {"llama.pooling_type": 3}}, "an encoder, embedding or diffusion model"),
        ({"numbers": {"llama.attention.causal": 0}}, "an encoder, embedding"),
        ({"architecture": "t5"}, "an encoder, embedding"),
    ],
)
def test_a_file_that_writes_no_text_is_refused_as_what_it_is(by_hand, says, message):
    with pytest.raises(ModelError, match=rf"made\.gguf: {message}"):
        read_info(by_hand(EMBEDDING, **says))


@pytest.mark.parametrize("begin", [0, 100])  # the first part and a later one
def test_a_part_of_a_file_that_was_cut_is_to_be_joined_and_with_which(tmp_path, dense, begin):
    for name, parts in (("part2of2", ".part1of2 m.gguf.part2of2"), ("split-b", ".split-*")):
        part = tmp_path / f"m.gguf.{name}"
        part.write_bytes(dense.read_bytes()[begin:-100])
        with pytest.raises(ModelError) as refused:
            read_info(part)
        assert str(refused.value).endswith(f"; join the parts: cat m.gguf{parts} > m.gguf")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_cut_anywhere_or_changed_in_its_header_is_refused_with_one_line(dense, data):
    whole = bytearray(dense.read_bytes())
    # The writer pads the last tensor to 32 bytes; a file without that padding is complete.
    kept = data.draw(st.integers(0, len(whole) - 32))
    pieces = st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8))
    changes = data.draw(st.lists(st.tuples(st.integers(0, 8192), pieces), max_size=3))
    for place, piece in changes:
        whole[place : place + len(piece)] = piece
    cut = dense.with_name("cut.gguf")
    cut.write_bytes(whole[:kept])
    try:
        read_info(cut)
    except ModelError as error:
        said = str(error)
        assert said.startswith(f"{cut}: ")
        assert "\n" not in said
        assert "truncated, " not in said or f"truncated, {kept} bytes of at least" in said
    else:
        assert changes  # by which the file may need less


def test_a_split_model_has_the_info_of_the_whole_one_through_its_link_too(tmp_path, dense):
    parts = split_model(dense, tmp_path, "split", 3)
    whole, split = read_info(dense), read_info(parts[0])
    assert split.size_bytes == sum(part.stat().st_size for part in parts)
    lines = "".join(f"{sha256_of(part)}\n" for part in parts)
    assert digest_of_parts([*map(sha256_of, parts)]) == hashlib.sha256(lines.encode()).hexdigest()
    assert replace(split, size_bytes=whole.size_bytes) == whole
    link(parts[0], tmp_path / "model.gguf")
    assert read_info(tmp_path / "model.gguf") == split


def test_parts_that_are_no_whole_model_are_refused(tmp_path, dense):
    parts = split_model(dense, tmp_path, "split", 3)
    [other] = write_models(tmp_path, other=varied(TINY, layers=8)).values()
    split_model(other, tmp_path / "larger", "split", 3)[1].replace(parts[1])
    others = "tensors that its parts should have; fetch or make .* names like x-00001-of-00002"
    with pytest.raises(ModelError, match=others):
        read_info(parts[0])
    parts[2].write_bytes(parts[2].read_bytes()[:-64])
    with pytest.raises(ModelError, match=rf"{parts[2].name}: truncated"):
        read_info(parts[0])
    parts[1].unlink()
    with pytest.raises(ModelError, match=rf"{parts[1].name}: cannot be read"):
        read_info(parts[0])
    with pytest.raises(ModelError, match=others):
        read_info(parts[0].rename(tmp_path / "lone.gguf"))


FAMILY = Family(architecture="qwen35", vocabulary=384, layers=4, parameters=1, parameters_active=1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"architecture": "qwen35moe"}, "architecture qwen35, not qwen35moe"),
        ({"vocabulary": 385, "layers": 5}, "vocabulary 384, not 385; layers 4, not 5"),
        ({"experts": 8, "tensors": 1}, "experts 0, not 8; tensors {info.tensor_count}, not 1"),
        ({"parameters": 1e9}, "parameters {info.parameters_total}, not about 1000000000"),
    ],
)
def test_a_model_of_another_family_is_refused(dense, wrong, message):
    info = read_info(dense)
    known = {"tensors": info.tensor_count, "parameters": info.parameters_total * 1.019}
    check_family(info, FAMILY.model_copy(update=known), dense)
    check_family(info, FAMILY.model_copy(update=known | {"tensors": None}), dense)
    with pytest.raises(ModelError, match=f": {message.format(info=info)}; correct"):
        check_family(info, FAMILY.model_copy(update=known | wrong), dense)


def test_a_model_of_another_digest_than_the_config_gives_is_refused(dense, tmp_path):
    digest, info = sha256_of(dense), tmp_path / "info.json"
    entry = PathModel(kind="path", path=str(dense), sha256=digest)
    write_info(dense, entry, None, ("", ""), info)
    assert load_info(info).sha256 == digest
    with pytest.raises(ModelError, match=f"SHA-256 {digest}, not {'0' * 64}; correct"):
        write_info(dense, entry.model_copy(update={"sha256": "0" * 64}), None, ("", ""), info)
