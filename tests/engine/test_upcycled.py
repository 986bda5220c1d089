"""An upcycled model computes what its dense one does, whatever its router chooses."""

from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType

from specmoe.errors import ModelError
from specmoe.measure.upcycled import TOKENS, check_upcycled
from specmoe.models.derived import quantize
from specmoe.models.gguf import read_card

from ..dense_model import weights_of, write_dense, write_moe

TEXT = "def mean(values):\n    return sum(values) / len(values)\n"


def upcycled_from(source: Path, **keys: int) -> Path:
    return write_moe(source, source.with_name("moe.gguf"), experts=8, **keys)


@pytest.fixture
def compared(start):
    """Compare an upcycled model with a dense one."""

    def compare(source: Path, model: Path) -> list[dict[str, Any]]:
        return check_upcycled(start, source, model, read_card(model), TEXT)

    return compare


@pytest.mark.parametrize("kind", [GGMLQuantizationType.F16, GGMLQuantizationType.Q8_0])
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_copy_computes_the_same_with_one_expert_and_with_several(
    compared, tmp_path, architecture, kind
):
    source = write_dense(tmp_path / "dense.gguf", architecture, kind)
    found = compared(source, upcycled_from(source, used=3))
    assert [of["experts_used"] for of in found] == [1, 3]
    for of in found:
        assert of["tokens"] == TOKENS
        assert of["same"] > 0.9 * TOKENS  # near ties may change places
        assert of["median_nats"] <= of["widest_nats"]


@pytest.mark.parametrize("used", [1, 2])
def test_a_model_that_is_no_copy_is_refused(compared, tmp_path, used):
    source = write_dense(tmp_path / "dense.gguf")
    weights = weights_of("llama")
    weights["blk.2.ffn_down.weight"] *= 0.8
    other = write_dense(tmp_path / "other.gguf", weights=weights)
    model = upcycled_from(other, used=used)
    with pytest.raises(ModelError, match=r"moe\.gguf: .* differ from those of dense\.gguf"):
        compared(source, model)


def test_a_dense_model_is_widened_for_a_twin_whatever_its_type(engine_bin, tmp_path):
    source = write_dense(tmp_path / "dense.gguf", kind=GGMLQuantizationType.Q8_0)
    wide = tmp_path / "wide.gguf"
    quantize(engine_bin, source, wide, "F16", tmp_path / "quantize.log")
    card = read_card(upcycled_from(wide))
    assert (card.type, set(card.tensor_types)) == ("F16", {"F16", "F32"})
