"""Campaigns as the rules see them, which follow from the configuration."""

import json
from dataclasses import fields
from itertools import pairwise

import pytest

from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import open_campaign
from specmoe.campaign.gate import load_campaign
from specmoe.campaign.inputs import Inputs
from specmoe.config.block import TimedPasses
from specmoe.errors import ConfigError
from specmoe.files import sha256_of
from specmoe.records import save

from ...conftest import ROOT


def test_engines_have_ids_and_every_block_has_one_of_them(study, campaign_of):
    study["suites"]["prompt_length"] |= {"protocol": "study", "engine": "march"}
    campaign = campaign_of(study)
    assert list(campaign.engine_ids) == ["current", "march"]
    assert campaign.engine_id == campaign.engine_ids["current"]
    assert campaign.engine_names[campaign.engine_id] == "current"
    used = {block.suite: campaign.engine_of_block(name) for name, block in campaign.blocks.items()}
    assert used == dict.fromkeys(study["campaign"]["suites"], campaign.engine_id) | {
        "prompt_length": campaign.engine_ids["march"]
    }


def test_a_model_keeps_the_engine_that_made_it(study, tmp_path, campaign_of):
    campaign = campaign_of(study)
    assert Inputs(campaign).maker("qwen3.5-35b-a3b-q4") == campaign.engine_id
    for file in (
        "models/study/makers/qwen3.5-35b-a3b-q4.json",
        "engines/other-cpu-00000000/engine.json",
    ):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(json.dumps({"id": "other-cpu-00000000"}))
    assert Inputs(campaign).maker("qwen3.5-35b-a3b-q4") == "other-cpu-00000000"


def test_a_job_finds_what_is_asked_for(study, campaign_of, tmp_path):
    campaign = campaign_of(study)
    campaign.record()
    found = open_campaign(campaign.places.file)
    assert list(found.blocks.items()) == list(campaign.blocks.items())
    with pytest.raises(ConfigError, match="has no block A/B"):
        found.block("A/B")
    with pytest.raises(ConfigError, match=r"my\.yaml is no results/<campaign>/campaign\.json"):
        open_campaign(tmp_path / "my.yaml")


def test_priorities_fall_in_the_order_of_blocks_and_the_machine_is_described_first(
    study, campaign_of
):
    jobs = Inputs(campaign := campaign_of(study))
    falling = [jobs.priorities[block] for block in campaign.blocks]
    assert all(one > other for one, other in pairwise([*falling, 0]))
    assert falling[0] == 1
    order = list(campaign.blocks)
    for repeat, first in campaign.first_blocks.items():
        described, before = jobs.machine_priority(str(repeat)), order[: order.index(first)][-1:]
        assert campaign.blocks[first].repeat == repeat
        assert described > jobs.priorities[first]
        assert all(described < jobs.priorities[one] for one in before)
        assert jobs.before_repeat(str(repeat)) == campaign.places.record_files(before)
    # What is excluded, even a whole repeat, is before nothing.
    *_, last = (name for name, block in campaign.blocks.items() if block.repeat == 0)
    excluded = [name for name, block in campaign.blocks.items() if block.repeat == 1]
    jobs = Inputs(campaign_of(study, exclude=excluded))
    assert jobs.before_repeat("2") == campaign.places.record_files([last])


def test_targets_with_greedy_drafts_are_judged_and_published_rows_are_not(study, campaign_of):
    targets = ["qwen3.5-35b-a3b-q4", "qwen3.5-35b-a3b-q8", "qwen3.5-4b-q8", "qwen3.5-9b-bf16"]
    assert campaign_of(study).judged_targets == targets
    assert campaign_of(study, source="study_rows").judged_targets == []
    study["measurement"]["protocol"] = "study"
    suites = ["moe_baseline", "dense_baseline", "prompt_length"]
    assert campaign_of(study, suites=suites, source="measured").judged_targets == []


def test_a_shipped_campaign_is_beside_its_configuration_or_in_the_workflow_with_its_trace(
    synthetic, campaign_of, tmp_path
):
    shipped = campaign_of(synthetic, source="shipped", name="demo")
    assert shipped.places.trace_file == ROOT / "resources/campaigns/demo/trace.json"
    assert shipped.demonstration
    (tmp_path / "runs.parquet").touch()
    beside = load_campaign(synthetic, ROOT, tmp_path, [tmp_path / "campaign.yaml"])
    assert beside.places.data == tmp_path
    assert not campaign_of(synthetic, name="methods").demonstration
    measured = campaign_of(synthetic, source="measured")
    assert measured.places.trace_file == measured.places.folder / "trace.json"
    assert measured.demonstration


def test_passes_are_timed_where_the_engine_is_built_here_and_samples_are_wanted(
    synthetic, campaign_of
):
    named = ROOT / "Snakefile"
    synthetic["measurement"]["engine_args"] = ["--chat-template-file", str(named)]
    timed = campaign_of(synthetic)
    assert {"random-moe-122m-q4", "random-8m-q8"} <= set(timed.timed_passes)
    asked = Asked(timed).passes("random-moe-122m-q4", 0)
    assert asked["engine_args_sha256"] == {str(named): sha256_of(named)}
    assert {one.name for one in fields(TimedPasses)} - {"seconds"} <= asked.keys()
    assert timed.table("pass_times") == [timed.places.data / "pass_times.parquet"]
    # A shipped campaign has them if it ships them.
    shipped = campaign_of(synthetic, source="shipped", name="demo")
    assert shipped.table("pass_times") == [ROOT / "resources/campaigns/demo/pass_times.parquet"]
    engine, synthetic["campaign"] = synthetic["engines"]["current"], dict(timed.config.campaign)
    synthetic["engines"]["current"] = {"source": "path", "path": "/opt/llama.cpp/bin"}
    assert campaign_of(synthetic).timed_passes == {}
    synthetic["engines"]["current"] = engine
    synthetic["measurement"]["pass_samples"] = 0
    assert campaign_of(synthetic).table("pass_times") == []


def test_the_time_left_is_told_at_the_pace_of_what_was_measured(study, campaign_of):
    campaign = campaign_of(study)
    assert Asked(campaign).progress.describe() == f"0 of {len(campaign.blocks)} blocks"
    first, *others = campaign.blocks
    seconds = 6 * campaign.blocks[first].runs  # ten runs a minute
    save(*campaign.places.record_files([first]), {}, {}, seconds)
    left = sum(campaign.blocks[block].runs for block in others)
    progress = f"1 of {len(campaign.blocks)} blocks, {left / 10:.0f} min left"
    assert Asked(campaign).progress.describe() == progress
