"""The plan says what drafts for each target, what it loads, and why MTP does not."""

import pytest

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.models.sizes import Size
from specmoe.plan.ways import list_ways, notes_on_mtp

from ..made_card import made_card


@pytest.fixture
def config(study, root):
    study["campaign"] |= {"models": "methods", "suites": ["X"]}
    study["suites"]["X"] = {
        "title": "t",
        "targets": ["moe_q8", "full_q8"],
        "gammas": [2, 4],
        "prompts": ["code"],
        "methods": [
            {"method": "mtp", "targets": ["moe_q8"]},
            {"method": "eagle3", "targets": ["moe_q8"], "drafts": ["eagle3"]},
            {"method": ["ngram-mod", "draft"], "targets": ["moe_q8"], "drafts": ["draft_q8"]},
            {"method": "ngram-simple", "targets": ["full_q8"], "gammas": [4]},
        ],
    }
    return load(study, root)


@pytest.fixture
def blocks(config):
    return list_blocks(config, gpu=False)


def test_each_way_is_listed_once_with_its_type_its_lengths_and_its_file(config, blocks):
    sizes = {"draft_q8": Size(5_000_000, 0, 0, 0, 0, 0, "")}
    mtp, head, chain = list_ways(config, blocks, sizes)
    assert (mtp.label, mtp.engine, mtp.gammas, mtp.loads) == ("MTP", "draft-mtp", (2, 4), False)
    assert (head.label, head.loads, head.file_bytes) == ("EAGLE-3", True, None)
    assert chain.label == "n-gram pool + draft model (Draft Q8)"
    assert (chain.engine, chain.file_bytes) == ("ngram-mod,draft-simple", 5_000_000)


def test_a_target_with_a_single_way_needs_no_list(config, blocks):
    assert {way.target for way in list_ways(config, blocks, {})} == {"MoE Q8"}


def test_the_plan_says_why_mtp_does_not_draft(config, blocks):
    [unknown] = notes_on_mtp(config, blocks, {})
    assert unknown.startswith("Whether Full Q8 has an MTP block is known once its file")
    assert notes_on_mtp(config, blocks, {"full_q8": made_card()}) == [
        "The file of Full Q8 has no MTP block"
    ]
    assert notes_on_mtp(config, blocks, {"full_q8": made_card(mtp_blocks=1)}) == []
