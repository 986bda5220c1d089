"""Trained weights on a real engine: the shipped draft, alone and as an upcycled MoE."""

import re

from specmoe.measure.upcycled import check_upcycled
from specmoe.models.gguf import read_card

from ..conftest import ROOT
from ..dense_model import write_moe

MODEL = ROOT / "resources/drafts/smollm2-draft.gguf"
ASKED = "Explain in three sentences why the sky is blue."
TOKENS = 48


def test_it_answers_a_chat_in_english_words(start):
    with start(MODEL) as server:
        asked = server.apply_template([{"role": "user", "content": ASKED}], None)
        answer = server.complete(
            server.tokenize(asked), n_predict=TOKENS, temperature=0, seed=0, until_end=True
        )
    words = re.findall(r"[A-Za-z]{2,}", answer["content"])
    assert len(words) > TOKENS / 3
    assert {"the", "of", "and", "to", "is", "a"} & {word.lower() for word in words}
    assert sum(map(len, words)) > 0.6 * len(answer["content"])


def test_an_moe_of_its_copies_computes_the_same(start, tmp_path):
    moe = write_moe(MODEL, tmp_path / "moe.gguf", used=2)
    one, two = check_upcycled(start, MODEL, moe, read_card(moe), ASKED)
    assert min(one["same"], two["same"]) > 0.8 * one["tokens"]
