"""Model files on a real engine: upcycled ones compute what their dense ones do, split ones load."""

import re

from specmoe.files import engine_path, link
from specmoe.models.gguf import read_info

from ..conftest import ROOT
from ..dense_model import write_dense, write_moe
from ..splitting import split_model

TRAINED = ROOT / "resources/drafts/smollm2-draft.gguf"
ASKED = "Explain in three sentences why the sky is blue."


def test_a_copy_computes_the_same_with_several_experts(start, tmp_path):
    source = write_dense(tmp_path / "dense.gguf", "qwen3")
    answers = []
    for file in (source, write_moe(source, tmp_path / "moe.gguf", experts=8, used=3)):
        with start(file) as server:
            prompt = server.tokenize("def mean(values):\n    return")
            answers.append(server.complete(prompt, n_predict=32, temperature=0, seed=0)["tokens"])
    assert answers[0] == answers[1]


def test_the_shipped_draft_answers_a_chat_in_english_words(start):
    with start(TRAINED) as server:
        asked = server.apply_template([{"role": "user", "content": ASKED}], None)
        answer = server.complete(
            server.tokenize(asked), n_predict=48, temperature=0, seed=0, until_end=True
        )
    words = re.findall(r"[A-Za-z]{2,}", answer["content"])
    assert len(words) > 48 / 3
    assert {"the", "of", "and", "to", "is", "a"} & {word.lower() for word in words}
    assert sum(map(len, words)) > 0.6 * len(answer["content"])


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
