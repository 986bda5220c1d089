"""Drafts cut from a model's own file: its first layers, as they are."""

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from specmoe.errors import ModelError
from specmoe.models import gguf_writer
from specmoe.models.gguf import check_same_vocabulary, read_card
from specmoe.models.gguf_header import read_header, read_stored_values
from specmoe.models.synthetic import write_model
from specmoe.models.truncate import truncate

from ...recipes import TINY
from ...splitting import split_model

MOE = replace(TINY, layers=8, experts=4, experts_used=2, expert_ffn=32, mtp_blocks=1)
FULL = replace(TINY, layers=4, attention="full", core_layers=1, mtp_blocks=1)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "model.gguf", MOE)
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("dtype", ["F16", "BF16", "Q8_0"])
def test_a_cut_is_the_model_that_its_first_layers_are(tmp_path, dtype):
    source, cut, small = (tmp_path / f"{name}.gguf" for name in ("source", "cut", "small"))
    write_model(source, replace(MOE, dtype=dtype))
    truncate(source, 4, cut)
    write_model(small, replace(MOE, dtype=dtype, layers=4, mtp_blocks=0))
    assert cut.read_bytes() == small.read_bytes()


def test_a_value_for_each_block_is_cut_with_the_blocks(tmp_path):
    source, cut, small = (tmp_path / f"{name}.gguf" for name in ("source", "cut", "small"))
    write_model(source, FULL)
    truncate(source, 2, cut)
    write_model(small, replace(FULL, layers=2, mtp_blocks=0))
    assert cut.read_bytes() == small.read_bytes()


def test_the_sections_of_a_rotation_are_no_values_for_blocks(tmp_path, model):
    source, cut = tmp_path / "four.gguf", tmp_path / "cut.gguf"
    write_model(source, replace(TINY, layers=5))
    truncate(source, 4, cut)
    key = "qwen35.rope.dimension_sections"
    assert read_stored_values(cut)[key] == read_stored_values(source)[key]


def test_all_other_metadata_stays(tmp_path, model):
    truncate(model, 4, tmp_path / "cut.gguf")
    before, after = read_stored_values(model), read_stored_values(tmp_path / "cut.gguf")
    changed = {key for key in before if after.get(key) != before[key]}
    assert changed == {"qwen35moe.block_count", "qwen35moe.nextn_predict_layers"}
    check_same_vocabulary(model, tmp_path / "cut.gguf")


def test_the_parts_of_a_split_model_become_one_file(tmp_path, model):
    truncate(model, 5, tmp_path / "whole.gguf")
    parts = split_model(model, tmp_path / "parts", "model", 2)
    truncate(parts[0], 5, tmp_path / "cut.gguf")
    assert read_card(tmp_path / "cut.gguf") == read_card(tmp_path / "whole.gguf")
    assert not any(key.startswith("split.") for key in read_header(tmp_path / "cut.gguf").metadata)


@pytest.mark.parametrize("layers", [3, 8, 9])
def test_a_number_of_layers_that_is_no_draft_is_refused_in_one_line(tmp_path, model, layers):
    with pytest.raises(ModelError, match=r"at least 4, for one with full.*fewer than its 8$"):
        truncate(model, layers, tmp_path / "cut.gguf")
    assert not (tmp_path / "cut.gguf").exists()


def test_a_file_that_is_no_language_model_is_refused(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "clip")
    writer.add_tensor("any", np.ones(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"no whole number under 'clip.block_count'"):
        truncate(tmp_path / "other.gguf", 1, tmp_path / "cut.gguf")


def test_a_failed_cut_leaves_the_old_file_and_no_other(tmp_path, model, monkeypatch):
    out = tmp_path / "cut.gguf"
    out.write_bytes(b"old")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gguf_writer, "_stored", full_disk)
    with pytest.raises(ModelError, match=r"not written.*No space left"):
        truncate(model, 4, out)
    assert out.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [out, model]
