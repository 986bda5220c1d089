"""Model files on a real engine: a wrong copy is found, and split ones load.

Copies that are right are measured by tests/workflow/test_made_models.py.
"""

import pytest

from specmoe.engine.identity import Workplace
from specmoe.errors import ModelError
from specmoe.files import engine_path, link
from specmoe.measure.divergence import check_upcycled
from specmoe.models.gguf import read_info

from ..dense_model import weights_of, write_dense, write_moe
from ..splitting import split_model


def test_an_upcycled_model_that_is_no_copy_is_refused(engine_bin, tmp_path):
    source = write_dense(tmp_path / "dense.gguf")
    weights = weights_of("llama")
    weights["blk.2.ffn_down.weight"] *= 0.8
    other = write_dense(tmp_path / "other.gguf", weights=weights)
    model = write_moe(other, tmp_path / "moe.gguf", experts=8, used=2)
    place = Workplace(tmp_path, engine_bin.with_name("engine.json"), tmp_path / "machine", 120)
    with pytest.raises(ModelError, match=r"moe\.gguf: .* differ from those of dense\.gguf"):
        check_upcycled(source, model, "Why is the sky blue?", place, {}, 1, 0, tmp_path / "log")


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
