"""Model files on a real engine: upcycled ones write what their sources write."""

from ..dense_model import write_dense, write_moe


def texts_of(start, model):
    with start(model) as server:
        return server.complete([1] * 8, n_predict=8, temperature=0, seed=1)["tokens"]


def test_an_upcycled_model_writes_what_its_dense_model_writes(start, tmp_path):
    source = write_dense(tmp_path / "dense.gguf")
    model = write_moe(source, tmp_path / "moe.gguf", experts=8, used=2)
    assert texts_of(start, source) == texts_of(start, model)
