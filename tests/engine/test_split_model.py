"""A split model loads through the link it is given."""

from specmoe.files import engine_path, link
from specmoe.models.gguf import read_card

from ..splitting import split_model


def test_a_split_model_generates_what_the_whole_one_generates(start, family, tmp_path):
    whole = family["draft"]
    parts = split_model(whole, tmp_path / "hub", "named-otherwise", 3)
    model = tmp_path / "model.gguf"
    link(parts[0], model)
    assert read_card(model).tensor_count == read_card(whole).tensor_count
    texts = []
    for file in (engine_path(model), whole):
        with start(file) as server:
            texts.append(server.complete([1] * 8, n_predict=8, temperature=0, seed=1)["tokens"])
    assert texts[0] == texts[1]
