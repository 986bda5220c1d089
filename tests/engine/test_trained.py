"""Trained weights on a real engine: the shipped draft, alone."""

import re

from ..conftest import ROOT

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
