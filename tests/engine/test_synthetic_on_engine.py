"""Synthetic models on the real engine: they load, quantize, vary, and draft for each other."""

from pathlib import Path
from typing import Any

import pytest

from specmoe.engine.job import speculation_flags
from specmoe.engine.server import Server
from specmoe.models.synthetic import write_model

from ..blocks import DRAFTED
from ..recipes import DENSE, MOE, SMALL, varied

RECIPES = {
    "draft": SMALL,
    "dense": DENSE,
    "moe": MOE,
    "stranger": varied(SMALL, seed=1),
    "written_q8_0": varied(DENSE, dtype="Q8_0"),
    "written_q4_k": varied(MOE, dtype="Q4_K"),
    "tied_q8_0": varied(DENSE, dtype="Q8_0", tied=True, vocabulary=2048),
}
PROMPTS = ("The cause of the", "def mean(values):\n    return", "推测解码为什么更快？")


def generate(server: Server, prompt: str) -> dict[str, Any]:
    return server.complete(server.tokenize(prompt), n_predict=48, temperature=0, seed=1)


@pytest.fixture
def acceptance_rate(start):
    """Give the share that a target accepts of a draft that proposes four tokens a round."""

    def rate(target: Path, draft: Path) -> float:
        with start(target, speculation_flags(DRAFTED, draft, 0), 1024) as server:
            timings = [generate(server, prompt)["timings"] for prompt in PROMPTS]
        drafted = sum(timing["draft_n"] for timing in timings)
        return float(sum(timing["draft_n_accepted"] for timing in timings) / drafted)

    return rate


@pytest.fixture(scope="module")
def models(module_folder: Path) -> dict[str, Path]:
    for name, recipe in RECIPES.items():
        write_model(module_folder / f"{name}.gguf", recipe)
    return {name: module_folder / f"{name}.gguf" for name in RECIPES}


def test_any_text_survives_tokenization(start, models):
    with start(models["draft"]) as server:
        for text in (*PROMPTS, "tabs\tand\r\nnew lines", "naïve 🙂"):
            ids = server.tokenize(text)
            assert server.detokenize(ids) == text
            assert len(ids) <= len(text.encode())


@pytest.mark.parametrize("model", ["moe", "tied_q8_0"])
def test_greedy_text_varies_depends_on_the_prompt_and_is_printable(start, models, model):
    with start(models[model]) as server:
        answers = [generate(server, prompt) for prompt in PROMPTS]
    texts = [answer["tokens"] for answer in answers]
    assert all(len(set(tokens)) >= 12 for tokens in texts)
    assert len({tuple(tokens[-8:]) for tokens in texts}) == len(PROMPTS)
    if model == "moe":
        assert all(answer["content"].isascii() for answer in answers)
        assert all(answer["content"].replace("\n", "").isprintable() for answer in answers)


@pytest.mark.parametrize(
    ("target", "draft", "least", "most"),
    [
        pytest.param("dense", "draft", 0.3, 0.97, id="a nested draft: often but not always"),
        pytest.param("moe", "draft", 0.3, 0.97, id="the same for an MoE"),
        pytest.param("dense", "dense", 0.97, 1, id="the model itself: nearly always"),
        pytest.param("dense", "stranger", 0, 0.1, id="another seed: almost never"),
        pytest.param("written_q8_0", "dense", 0.8, 1, id="Q8_0 and its unquantized twin"),
        pytest.param("written_q4_k", "moe", 0.8, 1, id="Q4_K and its unquantized twin"),
    ],
)
def test_a_target_accepts_a_draft_by_their_likeness(
    models, acceptance_rate, target, draft, least, most
):
    assert least <= acceptance_rate(models[target], models[draft]) <= most
