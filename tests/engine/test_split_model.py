"""A split model loads through the link it is given."""

from specmoe.engine.server import Server, server_command
from specmoe.files import engine_path, link
from specmoe.models.gguf import read_card

from ..splitting import split_model


def generate(engine_bin, model, log):
    command = server_command(
        engine_bin / "llama-server", model, context=512, threads=1, gpu_layers=0
    )
    with Server(command, log, start_limit_s=60, run_limit_s=60) as server:
        return server.complete([1] * 8, n_predict=8, temperature=0, seed=1)["tokens"]


def test_a_split_model_generates_what_the_whole_one_generates(engine_bin, family, tmp_path):
    whole = family["draft"]
    parts = split_model(whole, tmp_path / "hub", "named-otherwise", 3)
    model = tmp_path / "model.gguf"
    link(parts[0], model)
    assert read_card(model).tensor_count == read_card(whole).tensor_count
    split = generate(engine_bin, engine_path(model), tmp_path / "split.log")
    assert split == generate(engine_bin, whole, tmp_path / "whole.log")
