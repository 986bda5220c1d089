"""What models can draft by is read from their entries, and from files that are there."""

import pytest

from specmoe.config.load import load
from specmoe.config.methods import Method
from specmoe.models.synthetic import write_model
from specmoe.plan.model_methods import files_say

from ...recipes import TINY


@pytest.fixture
def known(study, root, tmp_path):
    """What is known of set `methods`, and of two files of the user's."""
    write_model(tmp_path / "there.gguf", TINY)
    study["campaign"]["models"] = "methods"
    study["model_sets"]["methods"] |= {
        name: {"kind": "path", "path": str(tmp_path / f"{name}.gguf")} for name in ("there", "gone")
    }
    suite = {"title": "t", "targets": ["there"], "methods": "all", "gammas": [4]}
    study["suites"] = {"X": suite | {"prompts": ["code"]}}
    study["campaign"]["suites"] = ["X"]
    return files_say(load(study, root), tmp_path)


def test_a_block_is_known_of_recipes_and_of_what_is_quantized_from_them(known):
    assert [model for model in ("moe_f16", "moe_q4", "draft_f16", "there", "gone", "eagle3")
            if known(model).has_block] == ["moe_f16", "moe_q4"]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("eagle3", Method.EAGLE3), ("dspark", Method.DSPARK), ("ngrams", Method.NGRAM_CACHE),
        ("cut_q8", Method.DRAFT), ("there", Method.DRAFT), ("gone", Method.DRAFT),
    ],
)  # fmt: skip
def test_a_file_drafts_as_it_was_made_for(known, model, method):
    assert known(model).method == method
