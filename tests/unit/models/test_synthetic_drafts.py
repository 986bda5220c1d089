"""Drafts constructed for a synthetic target: their files, and what their layers compute."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from specmoe.models.gguf import read_card
from specmoe.models.gguf_file import read_header
from specmoe.models.synthetic import write_model
from specmoe.models.synthetic_drafts import write_draft

from ...recipes import TINY, varied

DENSE = varied(TINY, layers=5, core_first=3, core_layers=1)
HYBRID = varied(DENSE, experts=4, experts_used=2, expert_ffn=32)
FULL = varied(TINY, layers=2, core_layers=1, attention="full")
TARGETS = [pytest.param(HYBRID, id="hybrid MoE"), pytest.param(FULL, id="full attention")]
METHODS = ["eagle3", "dflash", "dspark"]


def written(folder: Path, recipe: Any, method: Any) -> dict[str, npt.NDArray[np.float32]]:
    path = folder / "draft.gguf"
    write_draft(path, recipe, method, block_size=8)
    found = gguf.GGUFReader(path).tensors
    return {tensor.name: np.array(tensor.data, dtype=np.float32) for tensor in found}


@pytest.mark.parametrize("recipe", TARGETS)
@pytest.mark.parametrize("method", METHODS)
def test_a_draft_has_its_targets_vocabulary_and_the_same_bytes_again(tmp_path, recipe, method):
    written(tmp_path, recipe, method)
    write_model(tmp_path / "target.gguf", recipe)
    card = read_card(tmp_path / "draft.gguf")
    assert card.vocabulary_sha256 == read_card(tmp_path / "target.gguf").vocabulary_sha256
    assert card.architecture == ("eagle3" if method == "eagle3" else "dflash")
    assert (card.layers, card.type) == (2 if method == "dflash" else 1, "F16")
    if method != "eagle3":
        assert read_header(tmp_path / "draft.gguf").number("dflash.block_size") == 8
    first = (tmp_path / "draft.gguf").read_bytes()
    written(tmp_path, recipe, method)
    assert (tmp_path / "draft.gguf").read_bytes() == first


@pytest.mark.parametrize("method", METHODS)
def test_a_draft_repeats_the_feed_forward_of_the_targets_core(tmp_path, method):
    write_model(tmp_path / "target.gguf", HYBRID)
    found = gguf.GGUFReader(tmp_path / "target.gguf").tensors
    target = {tensor.name: np.array(tensor.data, dtype=np.float32) for tensor in found}
    draft = written(tmp_path, HYBRID, method)
    layer = "blk.1." if method == "dflash" else "blk.0."
    for name in ("ffn_gate", "ffn_up"):
        shared = target[f"blk.3.{name}_shexp.weight"]
        np.testing.assert_array_equal(draft[f"{layer}{name}.weight"], shared)
    halved = target["blk.3.ffn_down_shexp.weight"] / 2
    np.testing.assert_allclose(draft[f"{layer}ffn_down.weight"], halved, rtol=1e-3)
