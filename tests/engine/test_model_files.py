"""Model files on a real engine: upcycled ones compute what their dense ones do, split ones load."""

from pathlib import Path

import pytest
from gguf import GGMLQuantizationType

from specmoe.errors import ModelError
from specmoe.files import engine_path, link
from specmoe.measure.divergence import TOKENS
from specmoe.models.gguf import read_info

from ..dense_model import weights_of, write_dense, write_moe
from ..splitting import split_model

TEXT = "def mean(values):\n    return sum(values) / len(values)\n"


def upcycled_from(source: Path, **keys: int) -> Path:
    return write_moe(source, source.with_name("moe.gguf"), experts=8, **keys)


def test_a_copy_computes_the_same_with_several_experts(check, tmp_path):
    source = write_dense(tmp_path / "dense.gguf", "qwen3", GGMLQuantizationType.Q8_0)
    found = check(source, upcycled_from(source, used=3), TEXT)
    assert found["tokens"] == TOKENS
    assert found["median_nats"] < 0.05


def test_a_model_that_is_no_copy_is_refused(check, tmp_path):
    source = write_dense(tmp_path / "dense.gguf")
    weights = weights_of("llama")
    weights["blk.2.ffn_down.weight"] *= 0.8
    other = write_dense(tmp_path / "other.gguf", weights=weights)
    model = upcycled_from(other, used=2)
    with pytest.raises(ModelError, match=r"moe\.gguf: .* differ from those of dense\.gguf"):
        check(source, model, TEXT)


def test_a_split_model_generates_what_the_whole_one_generates(start, family, tmp_path):
    whole = family["draft"]
    parts = split_model(whole, tmp_path / "hub", "named-otherwise", 3)
    model = tmp_path / "model.gguf"
    link(parts[0], model)
    assert read_info(model).tensor_count == read_info(whole).tensor_count
    texts = []
    for file in (engine_path(model), whole):
        with start(file) as server:
            texts.append(server.complete([1] * 8, n_predict=8, temperature=0, seed=1)["tokens"])
    assert texts[0] == texts[1]
