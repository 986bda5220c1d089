"""The matrix of blocks and their order follow from the configuration."""

import math
from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.block import Arm, Outputs
from specmoe.config.load import load
from specmoe.config.matrix import (
    block_order,
    choose_demonstration,
    excluded_blocks,
    list_blocks,
    list_timed_passes,
)
from specmoe.config.methods import Method

from ...blocks import alone
from ...conftest import ROOT


def blocks_of(data):
    return list_blocks(load(data, ROOT), gpu=False)


def test_the_study_has_the_runs_of_the_papers_table_3_and_baselines_beside_those_that_draft(study):
    blocks = blocks_of(study)
    runs = {
        block.run_id(arm, source.prompt, group): (block.suite, arm.speculates)
        for block in blocks
        for group, arms in enumerate(block.groups)
        for arm in arms
        for source in block.prompts
    }
    # A and C have targets alone. B and D name no draft model `none`, but each of their runs has one
    # beside it.
    assert Counter(runs.values()) == {
        ("moe_baseline", False): 18,
        **{("moe_speculative", drafts): 144 for drafts in (True, False)},
        ("dense_baseline", False): 36,
        **{("dense_speculative", drafts): 72 for drafts in (True, False)},
        **{("prompt_length", drafts): 18 for drafts in (True, False)},
    }
    assert sum(block.runs for block in blocks) == len(runs)
    assert {
        "moe_speculative/qwen3.5-35b-a3b-q4/code/r0/qwen3.5-0.8b-q8/g8/code/p0",
        "moe_speculative/qwen3.5-35b-a3b-q4/code/r0/baseline-2/code/p0",
    } <= runs.keys()
    assert len({block.block for block in blocks}) == len(blocks)


MOE = "moe_speculative/qwen3.5-35b-a3b-q4"
ARMS = ["baseline", *(f"qwen3.5-{size}b-q8/g{g}" for size in ("0.8", "2") for g in (4, 8, 16))]


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        (ARMS[5:], [ARMS[5:]] * 3),  # γ of 8 and more of the larger draft model
        (["qwen3.5-2b-q8/r2", "qwen3.5-0.8b-q8/g4/r0"], [["qwen3.5-0.8b-q8/g4"], ARMS[4:]]),
        (["r1"], [ARMS]),
        # Without anything that drafts, nothing is left to compare.
        (["qwen3.5-2b-q8", "qwen3.5-0.8b-q8"], [ARMS] * 3),
    ],
)
def test_settings_are_excluded_of_all_repeats_or_of_one(study, names, gone):
    study["measurement"]["block_prompts"] = 9
    study["campaign"]["exclude"] = [f"moe_speculative/qwen3.5-35b-a3b-q8/{name}" for name in names]
    config = load(study, ROOT)
    excluded = excluded_blocks(config)
    assert [[arm.name for arm in block.arms] for block in excluded] == gone
    kept = [block for block in list_blocks(config, gpu=False) if block.suite == "moe_speculative"]
    whole = 6 * (1 + 6)  # two targets, three repeats; γ 4, 8 and 16 of two drafts
    assert sum(len(block.arms) for block in [*kept, *excluded]) == whole


def test_a_block_has_its_baseline_first_and_an_arm_for_each_setting(study):
    blocks = blocks_of(study)
    for block in blocks:
        assert block.arms[0] == Arm()
        assert block.speculates != (block.arms == (Arm(),))
        assert len(block.models) == 1 + len(block.drafting)
    found = {block.block: block for block in blocks}
    arms = found["dense_speculative/qwen3.5-4b-q8/code/r1"].arms
    assert [arm.name for arm in arms] == ARMS[:4]
    models = found[f"{MOE}/code/r0"].models
    assert models == ("qwen3.5-35b-a3b-q4", "qwen3.5-0.8b-q8", "qwen3.5-2b-q8")


def test_the_studys_commands_measure_the_target_alone_only_where_a_suite_names_it(study):
    study["measurement"]["protocol"] = "study"
    found = blocks_of(study)
    arms = {block.suite: [arm.name for arm in block.arms] for block in found}
    assert arms["dense_speculative"] == ARMS[1:4]
    assert arms["prompt_length"] == ["baseline", "qwen3.5-0.8b-q8/g8"]
    assert arms["moe_baseline"] == ["baseline"]
    assert sum(block.runs for block in found) == 306


def test_a_block_has_some_prompts_but_a_load_and_the_studys_commands_have_all(study):
    study["measurement"] |= {"block_prompts": 3, "n_predict": 8}
    study["suites"]["prompt_length"] |= {"protocol": "study", "engine": "march"}
    study["suites"]["dense_speculative"]["vary"] = {"requests": [1, 4]}
    prompts = {name: [] for name in study["campaign"]["suites"]}
    found = blocks_of(study)
    for block in found:
        prompts[block.suite].append(len(block.prompts))
    assert {suite: {*of} for suite, of in prompts.items()} == {
        "moe_baseline": {3},
        "moe_speculative": {1, 3},
        "dense_baseline": {3},
        "dense_speculative": {4},
        "prompt_length": {6},
    }
    assert {block.warmup_tokens for block in found} == {8}  # no longer than a run


@pytest.mark.parametrize("prompts", [1, 2, 3, 4])
def test_however_many_prompts_a_block_has_the_same_is_asked_in_every_repeat(study, prompts):
    study["measurement"]["block_prompts"] = prompts
    found = [block for block in blocks_of(study) if block.comparison == MOE]
    parts = [{block.prompts for block in found if block.repeat == number} for number in range(3)]
    assert parts[0] == parts[1] == parts[2]
    assert len(parts[0]) == math.ceil(4 / prompts)
    asked = [run for block in found for run in block.asked]
    assert len(asked) == len({*asked}) == 3 * 4 * len(ARMS)


@pytest.mark.parametrize("order", ["mixed", "by_target"])
def test_the_order_takes_repeat_after_repeat_and_mixes_suites_within_each(study, order):
    blocks = blocks_of(study)
    ordered = block_order(blocks, order)
    assert [block.repeat for block in ordered] == sorted(block.repeat for block in blocks)
    gone = [(block.repeat, block.target) for block in ordered]
    stretches = [here for here, _ in groupby(gone)]
    assert (len(stretches) == len(set(gone))) == (order == "by_target")
    suites = [
        [block.suite for block in ordered if (block.repeat, block.target) == (0, target)]
        for target in {block.target for block in blocks}
    ]
    assert any(mixed != sorted(mixed) for mixed in suites)


@given(names=st.sets(st.text(min_size=1), min_size=2, max_size=30))
def test_the_order_of_two_blocks_depends_on_those_two_alone(names):
    blocks = [replace(alone(), block=name) for name in sorted(names)]
    kept = blocks[::2]
    whole = block_order(blocks)
    assert [block for block in whole if block in kept] == block_order(kept)
    assert whole == block_order(reversed(blocks))


def test_repeats_are_samples_above_temperature_0(study):
    varied = {"prompts": ["code"], "vary": {"temperature": [0, 0.7]}}
    study["suites"]["prompt_length"] |= varied
    blocks = [block for block in blocks_of(study) if block.suite == "prompt_length"]
    assert [block.run_seed for block in blocks] == [42, 42, 42, 42, 43, 44]


def test_a_gpu_has_all_layers_up_to_five_prompts_in_a_block_and_rows_that_it_captures(study):
    config = load(study, ROOT)
    for gpu, layers, prompts, row in ((True, 99, {1, 3, 4, 5}, 5), (False, 0, {1}, 2)):
        found = list_blocks(config, gpu=gpu)
        assert {block.gpu_layers for block in found} == {layers}
        assert {len(block.prompts) for block in found} == prompts
        assert {one.row for one in list_timed_passes(config, found)} == {row}


def test_targets_verify_at_every_width_and_drafts_read_again_at_those_of_their_rounds(synthetic):
    synthetic["suites"]["dense_speculative"]["gammas"] = [4, 20]
    listed = list_timed_passes(load(synthetic, ROOT), blocks_of(synthetic))
    passes = {one.model: one for one in listed}
    suites = [one for one in synthetic["campaign"]["suites"] if one != "methods"]
    gammas = {gamma for suite in suites for gamma in synthetic["suites"][suite].get("gammas", [])}
    rounds = {1, 2, 17, *(gamma + 1 for gamma in gammas)}
    assert passes["random-8m-q8"].passes == tuple((Outputs.LAST, width) for width in sorted(rounds))
    assert passes["random-8m-q8"].seconds is None
    synthetic["measurement"]["minutes"] = 10
    few = list_timed_passes(load(synthetic, ROOT), blocks_of(synthetic))
    # A tenth of the minutes, half of it for counting experts.
    assert sum(one.seconds for one in few) == pytest.approx(30)
    every = tuple((Outputs.ALL, width) for width in (*range(1, 18), 21))
    assert passes["random-59m-f16"].passes == every
    # It drafts for itself in the controls.
    both = {
        model for model, one in passes.items() if {kind for kind, _ in one.passes} == {*Outputs}
    }
    assert both == set(synthetic["suites"]["controls"]["targets"])


def test_the_first_pair_of_the_campaign_is_decoded_if_it_has_one(synthetic):
    block = choose_demonstration(load(synthetic, ROOT), gpu=False)
    arm = Arm(4, method=Method.DRAFT, draft="random-8m-q8", draft_model="random-8m-q8")
    assert block.target == "random-moe-122m-q4"
    assert [source.file for source in block.prompts] == ["resources/prompts/short_factual.txt"]
    assert (block.n_predict, block.temperature, block.arms) == (64, 0, (arm,))
    # None drafts after a text.
    synthetic["campaign"]["suites"] = ["moe_baseline", "prompt_length"]
    assert choose_demonstration(load(synthetic, ROOT), gpu=False) is None
