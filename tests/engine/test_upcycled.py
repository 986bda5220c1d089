"""An upcycled model computes what its dense one does, whatever its router chooses."""

from pathlib import Path

import pytest
from gguf import GGMLQuantizationType

from specmoe.measure.batches import read_in_batches
from specmoe.models.gguf import read_card
from specmoe.models.quantize import quantize

from ..conftest import ROOT
from ..dense_model import write_dense, write_moe

TEXT = "def mean(values):\n    return sum(values) / len(values)\n"
ASKED = "Explain in three sentences why the sky is blue."
TRAINED = ROOT / "resources/drafts/smollm2-draft.gguf"
TOKENS = 96


@pytest.fixture
def alike(start):
    """The share of the tokens that a dense model writes which a model of its copies writes too."""

    def share(source: Path, model: Path, used: int, text: str = TEXT) -> float:
        with start(source) as server:
            prompt = server.tokenize(text)
            written = server.complete(prompt, n_predict=TOKENS, temperature=0, seed=0)["tokens"]
        experts = f"{read_card(model).architecture}.expert_used_count=int:{used}"
        with start(model, ("--override-kv", experts)) as server:
            read = list(read_in_batches(server, prompt, written[:-1], [1] * (TOKENS - 1), 2))
        same = [best.token == token for token, (best, *_) in zip(written, read, strict=True)]
        return sum(same) / TOKENS

    return share


@pytest.mark.parametrize("kind", [GGMLQuantizationType.F16, GGMLQuantizationType.Q8_0])
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_copy_writes_the_same_with_one_expert_and_with_several(
    alike, tmp_path, architecture, kind
):
    source = write_dense(tmp_path / "dense.gguf", architecture, kind)
    model = write_moe(source, tmp_path / "moe.gguf", experts=8, used=3)
    assert min(alike(source, model, used) for used in (1, 3)) > 0.9  # near ties may change places


def test_a_copy_of_a_trained_model_writes_the_same(alike, tmp_path):
    model = write_moe(TRAINED, tmp_path / "moe.gguf", used=2)
    assert min(alike(TRAINED, model, used, ASKED) for used in (1, 2)) > 0.8


def test_a_dense_model_is_widened_for_a_twin_whatever_its_type(engine_bin, tmp_path):
    source = write_dense(tmp_path / "dense.gguf", kind=GGMLQuantizationType.Q8_0)
    wide = tmp_path / "wide.gguf"
    quantize(engine_bin, source, wide, "F16", tmp_path / "quantize.log")
    card = read_card(write_moe(wide, tmp_path / "moe.gguf", experts=8))
    assert (card.type, set(card.tensor_types)) == ("F16", {"F16", "F32"})
