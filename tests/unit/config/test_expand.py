"""`methods: all` and `template: auto` stand for what the models' files are made for."""

import pytest

from specmoe.config.block import Stop, Template
from specmoe.config.expand import FileFacts, nothing_said
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import Method

from ...conftest import ROOT

NGRAMS = {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}
FACTS = {
    "head": FileFacts(method=Method.EAGLE3),
    "table": FileFacts(method=Method.NGRAM_CACHE),
    "blocked": FileFacts(has_block=True, has_template=False),
}


def said_of(model):
    return FACTS.get(model, FileFacts())


@pytest.fixture
def mine(study):
    """Return the configuration of a suite of targets and drafts, which tries all methods."""
    study["campaign"] |= {"models": "mine", "suites": ["mine"]}
    study["model_sets"]["mine"] = {
        name: {"kind": "path", "path": f"/models/{name}.gguf"}
        for name in ("plain", "blocked", "small", "head", "table")
    }

    def of(**suite):
        usual = {"title": "t", "targets": ["plain"], "methods": "all", "gammas": [2, 4]}
        study["suites"]["mine"] = usual | {"prompts": ["code"]} | suite
        return study

    return of


def blocks_of(data, said=said_of):
    return list_blocks(load(data, ROOT, lambda _: said), gpu=False)


@pytest.mark.parametrize(
    ("suite", "said", "found"),
    [
        ({}, said_of, {("plain", "ngram-simple"): [4], ("plain", "ngram-cache"): [8]}),
        ({"targets": ["plain", "blocked"]}, said_of, {("blocked", "mtp"): [2, 4]}),
        (
            {"drafts": ["small", "head", "table"]},
            said_of,
            {("plain", "small"): [2, 4], ("plain", "eagle3@head"): [2, 4]}
            | {("plain", "ngram-cache@table"): [8]},
        ),
        # Files that say nothing are plain models.
        ({"targets": ["blocked"], "drafts": ["head"]}, nothing_said, {("blocked", "head"): [2, 4]}),
    ],
)
def test_targets_and_drafts_draft_as_their_files_can_and_by_n_grams(mine, suite, said, found):
    data = mine(**suite)
    drafting = {
        (block.target, block.draft): [side.gamma for side in block.sides if side.speculates]
        for block in blocks_of(data, said)
    }
    assert drafting | found == drafting
    by_ngrams = {(target, way) for target in data["suites"]["mine"]["targets"] for way in NGRAMS}
    assert drafting.keys() == by_ngrams | found.keys()


def test_texts_are_chats_until_the_end_where_the_targets_file_has_a_template(mine):
    data = mine(targets=["plain", "blocked"], workloads=["texts"], prompts=[])
    blocks = blocks_of(data)
    assert {(block.target, block.sendings["texts"].template, block.stop) for block in blocks} == {
        ("plain", Template.CHAT, Stop.EOS),
        ("blocked", Template.RAW, Stop.LENGTH),
    }
    categories = {source.category for source in blocks[0].prompts}
    assert categories == {"facts", "code", "reasoning", "Chinese", "editing"}
    data["workloads"]["texts"]["stop"] = "length"  # holds for chats too
    assert {block.stop for block in blocks_of(data)} == {Stop.LENGTH}


def test_what_files_said_of_chats_is_recorded(mine):
    config = load(
        mine(targets=["blocked"], workloads=["texts"], prompts=[]), ROOT, lambda _: said_of
    )
    assert config.workloads["texts"].untemplated == ["blocked"]
    assert config.prompt_label("texts-code") == "Code"
    recorded = config.model_dump(mode="json", exclude_unset=True)
    recorded["campaign"]["source"] = "cached"
    assert load(recorded, ROOT).workloads["texts"].untemplated == ["blocked"]
