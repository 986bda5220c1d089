"""`methods: all` stands for what the models' files are made for."""

import pytest

from specmoe.config.load import PLAIN, load
from specmoe.config.matrix import TEXTS, begun, list_blocks, list_scoring
from specmoe.config.methods import Method

from ...conftest import ROOT

SHORT = {("plain", "ngram-mod"): [8, 64]}
NGRAMS = {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}
FACTS = {"head": {Method.EAGLE3}, "table": {Method.NGRAM_CACHE}, "blocked": {*PLAIN, Method.MTP}}
PATHS = {
    name: {"kind": "path", "path": f"/models/{name}.gguf"} for name in ("plain", "small", *FACTS)
}


@pytest.mark.parametrize(
    ("suite", "measurement", "found"),
    [
        ({}, {}, {("plain", "ngram-simple"): [8], ("plain", "ngram-cache"): [8]}),
        ({"gammas": [1, 2]}, {}, SHORT),
        # In stages they are played before, and two are planned.
        ({}, {"minutes": 5}, {("plain", "ngram-mod"): [4, 4, 4, 8, 8, 8, 16, 16, 16, 64]}),
        ({}, {"minutes": 5, "temperature": 0.7}, SHORT),
        ({}, {"minutes": 5, "pass_samples": 0}, SHORT),  # no program is built
        ({"vary": {"engine_args": [["--no-kv-offload"]]}}, {"minutes": 5}, SHORT),
        ({"targets": ["plain", "blocked"]}, {}, {("blocked", "mtp"): [2, 4]}),
        (
            {"drafts": ["small", "head", "table"]},
            {},
            {("plain", "small"): [2, 4], ("plain", "eagle3@head"): [2, 4]}
            | {("plain", "ngram-cache@table"): [8]},
        ),
    ],
)
def test_targets_and_drafts_draft_as_their_files_can_and_by_n_grams(
    study, suite, measurement, found
):
    study["measurement"] |= measurement
    study["campaign"] |= {"models": "mine", "suites": ["mine"]}
    study["model_sets"]["mine"] = PATHS
    usual = {"title": "t", "targets": ["plain"], "methods": "all", "gammas": [2, 4]}
    own = study["suites"]["mine"] = usual | {"prompts": ["code"]} | suite
    config = load(study, ROOT, lambda _, model: FACTS.get(model, PLAIN))
    drafting: dict[tuple[str, str], list[int]] = {}
    blocks = list_blocks(config, gpu=False)
    for block in blocks:
        for arm in block.arms[1:] if block.repeat == 0 else []:
            drafting.setdefault((block.target, arm.draft), []).append(arm.gamma)
    assert drafting | found == drafting
    whole = next(one for one in blocks if one.speculates)
    n_grams = {arm for arm in whole.arms if arm.method in NGRAMS}
    played = {name for name in list_scoring(config, blocks) if name.startswith("ngrams/")}
    assert bool(played) == (len(drafting["plain", "ngram-mod"]) > 2)
    assert len(n_grams.intersection(begun(config, whole).arms)) == (2 if played else len(n_grams))
    by_ngrams = {(target, way) for target in own["targets"] for way in NGRAMS}
    assert drafting.keys() == by_ngrams | found.keys()
    # In stages others wait: of each model and head two p_min, and six n-grams beside it.
    study["measurement"]["minutes"] = 10
    usual = {block.block: block for block in list_blocks(config, gpu=False)}
    staged = load(study, ROOT, lambda _, model: FACTS.get(model, PLAIN))
    for block in (one for one in list_blocks(staged, gpu=False) if TEXTS not in one.block):
        models = [arm.name for arm in usual[block.block].arms if arm.p_min == 0]
        waiting = {arm.name for arm in block.arms if arm.waits}
        first = [arm.name for arm in begun(staged, block).arms if arm.method not in NGRAMS]
        assert first == ["baseline", *models]
        assert len(waiting) == len(models) * (2 + 6)
        assert {f"{model}-p0.75" for model in models} <= waiting
