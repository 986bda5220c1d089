"""`methods: all` stands for what the models' files are made for."""

import pytest

from specmoe.config.load import PLAIN, load
from specmoe.config.matrix import list_blocks, list_ngram_scoring, with_few_ngrams
from specmoe.config.methods import Method

from ...conftest import ROOT

NGRAMS = {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}
FACTS = {
    "head": {Method.EAGLE3},
    "table": {Method.NGRAM_CACHE},
    "blocked": {*PLAIN, Method.MTP},
}
PATHS = {
    name: {"kind": "path", "path": f"/models/{name}.gguf"} for name in ("plain", "small", *FACTS)
}


@pytest.mark.parametrize(
    ("suite", "found"),
    [
        ({}, {("plain", "ngram-simple"): [8], ("plain", "ngram-cache"): [8]}),
        ({"gammas": [1, 2]}, {("plain", "ngram-mod"): [8, 64]}),
        ({"targets": ["plain", "blocked"]}, {("blocked", "mtp"): [2, 4]}),
        (
            {"drafts": ["small", "head", "table"]},
            {("plain", "small"): [2, 4], ("plain", "eagle3@head"): [2, 4]}
            | {("plain", "ngram-cache@table"): [8]},
        ),
    ],
)
def test_targets_and_drafts_draft_as_their_files_can_and_by_n_grams(study, suite, found):
    study["campaign"] |= {"models": "mine", "suites": ["mine"]}
    study["model_sets"]["mine"] = PATHS
    usual = {"title": "t", "targets": ["plain"], "methods": "all", "gammas": [2, 4]}
    own = study["suites"]["mine"] = usual | {"prompts": ["code"]} | suite
    config = load(study, ROOT, lambda _, model: FACTS.get(model, PLAIN))
    drafting: dict[tuple[str, str], list[int]] = {}
    for block in list_blocks(config, gpu=False):
        for arm in block.arms[1:] if block.repeat == 0 else []:
            drafting.setdefault((block.target, arm.draft), []).append(arm.gamma)
    assert drafting | found == drafting
    by_ngrams = {(target, way) for target in own["targets"] for way in NGRAMS}
    assert drafting.keys() == by_ngrams | found.keys()


@pytest.mark.parametrize(
    ("measurement", "varied", "settings", "scored"),
    [
        ({"repeats": 3}, {}, 6, False),
        ({"minutes": 5}, {}, 4 * 9 + 2, True),
        ({"minutes": 5, "temperature": 0.7}, {}, 6, False),
        ({"minutes": 5, "pass_samples": 0}, {}, 6, False),  # no program is built
        ({"minutes": 5}, {"engine_args": [[], ["--flash-attn", "on"]]}, 6, False),
    ],
)
def test_n_grams_have_more_lengths_where_all_are_scored_of_which_two_are_planned(
    study, measurement, varied, settings, scored
):
    study["campaign"] |= {"models": "mine", "suites": ["mine"]}
    study["model_sets"]["mine"] = PATHS
    study["suites"]["mine"] = {"title": "t", "targets": ["plain"], "methods": "all"} | {
        "prompts": ["code"],
        "vary": varied,
    }
    study["measurement"] |= measurement
    config = load(study, ROOT)
    block = next(block for block in list_blocks(config, gpu=False) if block.speculates)
    assert len(block.arms) == 1 + settings
    assert len(with_few_ngrams(config, block).arms) == 1 + (2 if scored else settings)
    played = {"plain": ["mine/plain/texts-alone/r0"]} if scored else {}
    assert list_ngram_scoring(config, [block]) == played
