"""The plan says what drafts for each target, what it loads, and why MTP does not."""

import pytest

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.models.sizes import Size
from specmoe.plan.ways import list_ways, notes_on_cuts, notes_on_mtp

from ..made_card import made_card


@pytest.fixture
def campaign(study):
    study["campaign"] |= {"models": "methods", "suites": ["X"]}
    study["suites"]["X"] = {
        "title": "t",
        "targets": ["moe_q8", "full_q8"],
        "gammas": [2, 4],
        "prompts": ["code"],
        "methods": [
            {"method": "mtp", "targets": ["moe_q8"]},
            {"method": "eagle3", "targets": ["moe_q8"], "drafts": ["eagle3"]},
            {"method": "draft", "targets": ["moe_q8"], "drafts": ["draft_q8"]},
            {"method": "ngram-simple", "targets": ["full_q8"], "gammas": [4]},
        ],
    }
    return study


@pytest.fixture
def config(campaign, root):
    return load(campaign, root)


@pytest.fixture
def blocks(config):
    return list_blocks(config, gpu=False)


def test_each_way_is_listed_once_with_its_type_its_lengths_and_its_file(config, blocks):
    sizes = {"draft_q8": Size(5_000_000, 0, 0, 0, 0, 0, "")}
    mtp, head, model = list_ways(config, blocks, sizes)
    assert (mtp.label, mtp.engine, mtp.gammas, mtp.loads) == ("MTP", "draft-mtp", (2, 4), False)
    assert (head.label, head.loads, head.file_bytes) == ("EAGLE-3", True, None)
    assert model.label == "Draft Q8"
    assert (model.engine, model.file_bytes) == ("draft-simple", 5_000_000)


def test_a_target_with_a_single_way_needs_no_list(config, blocks):
    assert {way.target for way in list_ways(config, blocks, {})} == {"MoE Q8"}


def test_the_draft_lengths_of_all_suites_are_listed_and_controls_are_not(campaign, root):
    several = {"title": "t", "targets": ["moe_q8"], "prompts": ["code"]}
    campaign["suites"]["Y"] = {**several, "drafts": ["moe_q8"], "gammas": [4]}
    campaign["suites"]["Z"] = {
        **several,
        "gammas": [8],
        "drafts": [],
        "methods": [{"method": "mtp"}],
    }
    campaign["campaign"]["suites"] += ["Y", "Z"]
    config = load(campaign, root)
    ways = list_ways(config, list_blocks(config, gpu=False), {})
    assert [way.label for way in ways if way.engine == "draft-simple"] == ["Draft Q8"]
    assert next(way.gammas for way in ways if way.label == "MTP") == (2, 4, 8)


def test_the_plan_says_why_mtp_does_not_draft_for_a_file_of_the_users(campaign, root):
    campaign["model_sets"]["methods"]["full_q8"] = {
        "kind": "path",
        "path": "x.gguf",
        "label": "Own",
    }
    config = load(campaign, root)
    blocks = list_blocks(config, gpu=False)
    [unknown] = notes_on_mtp(config, blocks, {})
    assert unknown.startswith("Whether Own has an MTP block is known once its file")
    assert notes_on_mtp(config, blocks, {"full_q8": made_card()}) == [
        "The file of Own has no MTP block"
    ]
    assert notes_on_mtp(config, blocks, {"full_q8": made_card(mtp_blocks=1)}) == []


def test_of_a_synthetic_target_the_recipe_says_enough(config, blocks):
    assert notes_on_mtp(config, blocks, {}) == []


def test_the_plan_says_that_a_cut_draft_is_not_trained(campaign, root):
    models = campaign["model_sets"]["methods"]
    models["full_q8"] = {"kind": "path", "path": "x.gguf", "label": "Own"}
    campaign["suites"]["X"]["methods"] = [{"method": "draft", "drafts": ["full_cut_q8", "cut_q8"]}]
    config = load(campaign, root)
    # The other one is of a synthetic model, whose first layers are made to agree.
    [note] = notes_on_cuts(config, list_blocks(config, gpu=False))
    assert note.startswith("Full first layers Q8 is cut and not trained")
