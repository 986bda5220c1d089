"""Model files on a real engine: upcycled and split ones write what their sources write."""

import pytest

from specmoe.files import engine_path, link
from specmoe.models.derived import quantize
from specmoe.models.gguf import read_info

from ..dense_model import write_dense, write_moe
from ..recipes import SMALL, split_model, varied, write_models


def texts_of(start, model):
    with start(model) as server:
        return server.complete([1] * 8, n_predict=8, temperature=0, seed=1)["tokens"]


# The position matters, of which `qwen2` turns other pairs of rows than `llama`.
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_an_upcycled_model_writes_what_its_dense_model_writes(start, tmp_path, architecture):
    source = write_dense(tmp_path / "dense.gguf", architecture)
    model = write_moe(source, tmp_path / "moe.gguf", experts=8, used=2)
    assert texts_of(start, source) == texts_of(start, model)


def test_so_does_one_that_is_made_of_a_synthetic_model(start, tmp_path):
    source = write_models(tmp_path, dense=varied(SMALL, attention="full"))["dense"]
    moe = write_moe(source, tmp_path / "moe.gguf", experts=8)
    assert texts_of(start, source) == texts_of(start, moe)


def test_a_type_that_the_package_does_not_know_is_read(engine_bin, start, family, tmp_path):
    model = tmp_path / "q2.gguf"
    quantize(engine_bin, family["draft"], model, "Q2_0", tmp_path / "log")
    info = read_info(model)
    assert (info.type, info.tensor_types["Q2_0"] > 10) == ("Q2_0", True)
    assert len(texts_of(start, model)) == 8


def test_a_split_model_generates_what_the_whole_one_generates(start, family, tmp_path):
    whole = family["draft"]
    parts = split_model(whole, tmp_path / "hub", "named-otherwise", 3)
    model = tmp_path / "model.gguf"
    link(parts[0], model)
    assert read_info(model).tensor_count == read_info(whole).tensor_count
    assert texts_of(start, engine_path(model)) == texts_of(start, whole)
