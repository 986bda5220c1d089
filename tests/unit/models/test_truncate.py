"""Drafts cut from a model's own file: its first layers, as they are."""

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.gguf_writer import GGUFValue

from specmoe.errors import ModelError
from specmoe.models import gguf_writer
from specmoe.models.gguf import read_card
from specmoe.models.gguf_header import read_header
from specmoe.models.synthetic import write_model
from specmoe.models.truncate import truncate

from ...recipes import TINY
from ...splitting import finish, split_model

MOE = replace(TINY, layers=8, experts=4, experts_used=2, expert_ffn=32, mtp_blocks=1)
FULL = replace(TINY, layers=4, attention="full", core_layers=1, mtp_blocks=1)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "model.gguf", MOE)
    return tmp_path / "model.gguf"


# With full attention, the metadata has a value for each block.
@pytest.mark.parametrize(
    ("recipe", "layers"),
    [*((replace(MOE, dtype=dtype), 4) for dtype in ("F16", "BF16", "Q8_0")), (FULL, 2)],
)
def test_a_cut_is_the_model_that_its_first_layers_are(tmp_path, recipe, layers):
    source, cut, small = (tmp_path / f"{name}.gguf" for name in ("source", "cut", "small"))
    write_model(source, recipe)
    truncate(source, layers, cut)
    write_model(small, replace(recipe, layers=layers, mtp_blocks=0))
    assert cut.read_bytes() == small.read_bytes()


def test_the_parts_of_a_split_model_become_one_file_with_all_other_metadata(tmp_path, model):
    parts = split_model(model, tmp_path / "parts", "model", 2)
    truncate(model, 5, tmp_path / "whole.gguf")
    truncate(parts[0], 5, tmp_path / "cut.gguf")
    assert read_card(tmp_path / "cut.gguf") == read_card(tmp_path / "whole.gguf")
    before, after = read_header(model).metadata, read_header(tmp_path / "cut.gguf").metadata
    changed = {key for key in before.keys() | after.keys() if after.get(key) != before.get(key)}
    assert changed == {"qwen35moe.block_count", "qwen35moe.nextn_predict_layers"}


@pytest.mark.parametrize("layers", [3, 8])
def test_a_number_of_layers_that_is_no_draft_is_refused_in_one_line(tmp_path, model, layers):
    with pytest.raises(ModelError, match=r"at least 4, for one with full.*fewer than its 8$"):
        truncate(model, layers, tmp_path / "cut.gguf")
    assert not (tmp_path / "cut.gguf").exists()


def test_a_file_that_is_no_language_model_is_refused(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "clip")
    writer.add_tensor("any", np.ones(32, dtype=np.float32))
    finish(writer)
    with pytest.raises(ModelError, match=r"no whole number under 'clip.block_count'"):
        truncate(tmp_path / "other.gguf", 1, tmp_path / "cut.gguf")


def test_values_of_any_type_are_copied_and_every_start_is_aligned(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "odd.gguf", "llama")
    writer.add_custom_alignment(64)
    writer.add_block_count(3)
    kinds = gguf.GGUFValueType
    writer.add_key_value("llama.each", [1, 2, 3], kinds.ARRAY, kinds.UINT16)
    writer.add_key_value("llama.names", ["a", "b", "c"], kinds.ARRAY, kinds.STRING)
    writer.add_key_value("tokens", [b"a", b"\xff\xfe"], kinds.ARRAY, kinds.STRING)
    writer.add_key_value("small", -3, kinds.INT8)
    writer.add_float64("wide", 0.1)
    for block in range(3):
        writer.add_tensor(f"blk.{block}.any.weight", np.full(3, block, np.float32))
    finish(writer)
    truncate(tmp_path / "odd.gguf", 2, tmp_path / "cut.gguf")
    before, after = (read_header(tmp_path / f"{name}.gguf") for name in ("odd", "cut"))
    changed = {key for key, value in after.metadata.items() if before.metadata[key] != value}
    assert changed == {"llama.block_count", "llama.each"}
    assert after.metadata["llama.each"].value == [1, 2]
    assert [tensor.start % 64 for tensor in after.tensors] == [0, 0]
    assert [t.data.tolist() for t in gguf.GGUFReader(tmp_path / "cut.gguf").tensors] == [
        [0.0] * 3,
        [1.0] * 3,
    ]


def test_empty_arrays_which_the_package_cannot_write_are_left_out():
    kinds = gguf.GGUFValueType
    empty, one = GGUFValue([], kinds.ARRAY, kinds.INT32), GGUFValue(1, kinds.UINT32)
    writer = gguf_writer.writer_of("llama", {"general.tags": empty, "llama.block_count": one})
    assert list(writer.kv_data[0]) == ["general.architecture", "llama.block_count"]


def test_a_failed_cut_leaves_the_old_file_and_no_other(tmp_path, model, monkeypatch):
    out = tmp_path / "cut.gguf"
    out.write_bytes(b"old")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gguf_writer, "_pad", full_disk)
    with pytest.raises(OSError, match="No space left"):
        truncate(model, 4, out)
    assert out.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [out, model]
