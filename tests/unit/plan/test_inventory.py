"""The inventory reads what a campaign has, and its plan is about the rest."""

import json
from dataclasses import replace

import pytest
import yaml

from specmoe.config.backend import Backend
from specmoe.config.block import Protocol
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.plan.inventory import take_inventory
from specmoe.plan.plan import Plan
from specmoe.plan.plan_text import describe

from ...conftest import merge
from .test_plan import M2_ULTRA


@pytest.fixture
def artefact(study, root):
    """The campaign that measures by both protocols, and its blocks."""
    config = load(merge(study, yaml.safe_load((root / "config/artefact.yaml").read_text())), root)
    return config, list_blocks(config, gpu=False)


def plant(block, folder, seconds=10.0):
    """Write the record of a measured block."""
    record = {"block": json.loads(block.to_json()), "elapsed_s": seconds}
    file = folder / "blocks" / f"{block.block}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record))


def test_the_engine_of_march_can_load_the_models(artefact):
    config, _ = artefact
    recipes = [model.recipe for model in config.models.values() if model.kind == "synthetic"]
    assert recipes
    # It misses tensors of a block for MTP on a hybrid model.
    assert not [recipe for recipe in recipes if recipe.mtp_blocks]


def test_a_campaign_measured_in_part_by_both_protocols_is_planned(artefact, root, tmp_path):
    config, blocks = artefact
    by_commands = [block for block in blocks if block.protocol == Protocol.PUBLISHED][:2]
    by_server = [block for block in blocks if block.protocol == Protocol.PAIRED][:2]
    for block, seconds in zip((*by_commands, *by_server), (10, 12, 13, 14), strict=True):
        plant(block, tmp_path, seconds)
    found = take_inventory(config, blocks, tmp_path / "models", tmp_path, root)
    times = [found.measured_s.get(block.block) for block in (*by_commands, *by_server)]
    assert times == [10, 12, 13, 14]
    assert len(found.measured_s) == 4
    plan = Plan(config, blocks, M2_ULTRA, Backend.CPU, found)
    text = describe(plan)
    assert "2 blocks: 22 s (estimated: " in text
    assert "2 blocks: 27 s (estimated: " in text
    assert f"for {len(blocks) - 4} blocks, at the pace of the measured ones" in text
    assert json.loads(json.dumps(plan.facts))["measured_s"] == found.measured_s


def test_a_changed_block_is_to_be_measured_again_and_has_no_time(artefact, root, tmp_path):
    config, blocks = artefact
    plant(blocks[0], tmp_path)
    now = [replace(blocks[0], n_predict=32)]
    found = take_inventory(config, now, tmp_path / "models", tmp_path, root)
    assert found.changed == {blocks[0].block: "n_predict: 64 before, 32 now"}
    assert found.measured_s == {}
