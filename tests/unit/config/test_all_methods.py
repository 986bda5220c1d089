"""`methods: all` and `template: auto` stand for what the models' files are made for."""

import pytest

from specmoe.config.block import Stop, Template
from specmoe.config.expand import FilesSay
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
    """Say that one target has a block and no chat template, and what the drafts' files are."""
    kinds = {"head": Method.EAGLE3, "table": Method.NGRAM_CACHE}
    return FilesSay(
        has_block=lambda model: model == "blocked",
        method_of=lambda model: kinds.get(model, Method.DRAFT),
        has_template=lambda model: model != "blocked",
    )


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


def test_texts_are_chats_until_the_end_where_the_targets_file_has_a_template(mine, root):
    mine["suites"]["mine"] |= {"targets": ["plain", "blocked"], "workloads": ["texts"]}
    del mine["suites"]["mine"]["prompts"]
    blocks = list_blocks(load(mine, root, files), gpu=False)
    assert {(block.target, block.sendings["texts"].template, block.stop) for block in blocks} == {
        ("plain", Template.CHAT, Stop.EOS),
        ("blocked", Template.RAW, Stop.LENGTH),
    }
    categories = {source.category for source in blocks[0].prompts}
    assert categories == {"facts", "code", "reasoning", "Chinese", "editing"}


def test_a_stated_length_holds_for_chats_too(mine, root):
    mine["suites"]["mine"] |= {"targets": ["plain"], "workloads": ["texts"], "prompts": []}
    mine["workloads"]["texts"]["stop"] = "length"
    [stop] = {block.stop for block in list_blocks(load(mine, root, files), gpu=False)}
    assert stop is Stop.LENGTH


def test_what_files_said_of_chats_is_recorded(mine, root):
    mine["suites"]["mine"] |= {"targets": ["blocked"], "workloads": ["texts"], "prompts": []}
    config = load(mine, root, files)
    assert config.workloads["texts"].untemplated == ["blocked"]
    assert config.prompt_label("texts-code") == "Code"
    recorded = config.model_dump(mode="json", exclude_unset=True)
    recorded["campaign"]["source"] = "cached"
    assert load(recorded, root).workloads["texts"].untemplated == ["blocked"]
