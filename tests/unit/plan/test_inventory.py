"""The inventory reads what a campaign has, and its plan is about the rest."""

import json

import pytest
import yaml

from specmoe.config.backend import Backend
from specmoe.config.block import Protocol
from specmoe.config.matrix import list_blocks
from specmoe.plan.door import load_campaign
from specmoe.plan.gate import Gate
from specmoe.plan.inventory import take_inventory
from specmoe.plan.plan import Plan
from specmoe.plan.plan_text import describe
from specmoe.records import save

from ...conftest import merge
from .test_plan import M2_ULTRA


@pytest.fixture
def artefact(study, root, tmp_path):
    """The campaign that measures by both protocols, and its blocks."""
    data = merge(study, yaml.safe_load((root / "config/artefact.yaml").read_text()))
    data["campaign"]["backend"] = "cpu"
    campaign = load_campaign(data, root, tmp_path)
    return campaign, list_blocks(campaign.config, gpu=False)


def plant(campaign, block, seconds=10.0, **before):
    """Write the record of a measured block."""
    request = Gate(campaign).block(block.block) | before
    save(Gate(campaign).records.kept(f"blocks/{block.block}", request), request, {}, seconds)


def test_the_engine_of_march_can_load_the_models(artefact):
    campaign, _ = artefact
    recipes = [
        model.recipe for model in campaign.config.models.values() if model.kind == "synthetic"
    ]
    assert recipes
    # It misses tensors of a block for MTP on a hybrid model.
    assert not [recipe for recipe in recipes if recipe.mtp_blocks]


def test_a_campaign_measured_in_part_by_both_protocols_is_planned(artefact):
    campaign, blocks = artefact
    by_commands = [block for block in blocks if block.protocol == Protocol.PUBLISHED][:2]
    by_server = [block for block in blocks if block.protocol == Protocol.PAIRED][:2]
    for block, seconds in zip((*by_commands, *by_server), (10, 12, 13, 14), strict=True):
        plant(campaign, block, seconds)
    found = take_inventory(campaign, blocks)
    times = [found.measured_s.get(block.block) for block in (*by_commands, *by_server)]
    assert times == [10, 12, 13, 14]
    assert len(found.measured_s) == 4
    plan = Plan(campaign.config, blocks, M2_ULTRA, Backend.CPU, found)
    text = describe(plan)
    assert "2 blocks: 22 s (estimated: " in text
    assert "2 blocks: 27 s (estimated: " in text
    assert f"for {len(blocks) - 4} blocks, at the pace of the measured ones" in text
    assert json.loads(json.dumps(plan.facts))["measured_s"] == found.measured_s


def test_a_changed_block_is_to_be_measured_again_and_has_no_time(artefact):
    campaign, blocks = artefact
    plant(campaign, blocks[0], n_predict=32)
    found = take_inventory(campaign, blocks)
    assert found.changed == {blocks[0].block: "n_predict: 32 before, 64 now"}
    assert found.measured_s == {}


def test_a_record_of_an_older_version_is_said_to_be_measured_again(artefact):
    campaign, blocks = artefact
    file = campaign.records / f"{blocks[0].block}.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    changed = {blocks[0].block: "its record is of a version that kept no digests"}
    assert take_inventory(campaign, blocks).changed == changed
