"""`methods: all` stands for what the targets and the drafts can do, and no more."""

import pytest

from specmoe.config.all_methods import FilesSay
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import Method

NGRAMS = {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}


@pytest.fixture
def mine(study):
    """A configuration of two targets, which only names what drafts by itself."""
    study["campaign"] |= {"models": "mine", "suites": ["mine"]}
    models = ("plain", "blocked", "small", "head", "table")
    study["model_sets"]["mine"] = {
        name: {"kind": "path", "path": f"/models/{name}.gguf"} for name in models
    }
    study["suites"]["mine"] = {
        **{"title": "t", "targets": ["plain"], "methods": "all"},
        **{"gammas": [2, 4], "prompts": ["code"]},
    }
    return study


def files(config):
    """Say that one target has a block, and what the drafts' files are."""
    kinds = {"head": Method.EAGLE3, "table": Method.NGRAM_CACHE}
    return FilesSay(lambda model: model == "blocked", lambda model: kinds.get(model, Method.DRAFT))


def drafting(data, root):
    """Return what drafts for each target, with the γ of its sides."""
    blocks = list_blocks(load(data, root, files), gpu=False)
    return {
        (block.target, block.draft): [side.gamma for side in block.sides if side.speculates]
        for block in blocks
    }


def test_a_target_alone_drafts_by_n_grams(mine, root):
    found = drafting(mine, root)
    assert {draft for _, draft in found} == NGRAMS
    assert found["plain", "ngram-simple"] == [4]
    assert found["plain", "ngram-cache"] == [8]


def test_a_target_with_a_block_drafts_by_mtp_too_and_the_other_does_not(mine, root):
    mine["suites"]["mine"]["targets"] = ["plain", "blocked"]
    found = drafting(mine, root)
    assert found["blocked", "mtp"] == [2, 4]
    assert ("plain", "mtp") not in found
    assert len(found) == 2 * len(NGRAMS) + 1


def test_drafts_draft_as_their_files_can(mine, root):
    mine["suites"]["mine"]["drafts"] = ["small", "head", "table"]
    found = drafting(mine, root)
    assert found["plain", "small"] == found["plain", "eagle3@head"] == [2, 4]
    assert found["plain", "ngram-cache@table"] == found["plain", "ngram-cache"] == [8]


def test_files_that_say_nothing_are_plain_models(mine, root):
    mine["suites"]["mine"] |= {"targets": ["blocked"], "drafts": ["head"]}
    blocks = list_blocks(load(mine, root), gpu=False)
    assert {block.draft for block in blocks} == {"head", *NGRAMS}
