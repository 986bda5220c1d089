"""`methods: all` stands for what the models' files are made for."""

import pytest

from specmoe.config.load import FileFacts, load
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import Method

from ...conftest import ROOT

NGRAMS = {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}
FACTS = {
    "head": FileFacts(method=Method.EAGLE3),
    "table": FileFacts(method=Method.NGRAM_CACHE),
    "blocked": FileFacts(has_block=True),
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
        ({}, said_of, {("plain", "ngram-simple"): [8], ("plain", "ngram-cache"): [8]}),
        ({"gammas": [1, 2]}, said_of, {("plain", "ngram-mod"): [8, 64]}),
        ({"targets": ["plain", "blocked"]}, said_of, {("blocked", "mtp"): [2, 4]}),
        (
            {"drafts": ["small", "head", "table"]},
            said_of,
            {("plain", "small"): [2, 4], ("plain", "eagle3@head"): [2, 4]}
            | {("plain", "ngram-cache@table"): [8]},
        ),
        # Files that say nothing are plain models.
        (
            {"targets": ["blocked"], "drafts": ["head"]},
            lambda _: FileFacts(),
            {("blocked", "head"): [2, 4]},
        ),
    ],
)
def test_targets_and_drafts_draft_as_their_files_can_and_by_n_grams(mine, suite, said, found):
    data = mine(**suite)
    drafting: dict[tuple[str, str], list[int]] = {}
    for block in (one for one in blocks_of(data, said) if one.repeat == 0):
        for side in block.sides[1:]:
            drafting.setdefault((block.target, side.draft), []).append(side.gamma)
    assert drafting | found == drafting
    by_ngrams = {(target, way) for target in data["suites"]["mine"]["targets"] for way in NGRAMS}
    assert drafting.keys() == by_ngrams | found.keys()
