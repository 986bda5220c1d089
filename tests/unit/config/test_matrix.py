"""The matrix of blocks and their order follow from the configuration."""

from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.block import Block, Method
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks, schedule
from specmoe.config.measurement import Order
from specmoe.config.parse import parse

from ...blocks import baseline


@pytest.fixture
def blocks(study, root):
    return list_blocks(load(study, root), gpu=False)


def test_the_study_has_the_runs_of_the_papers_table_3_and_48_paired_baselines(blocks):
    counts = Counter(block.suite for block in blocks for _ in block.prompts)
    assert counts == {"A": 18, "B": 144, "C": 36, "D": 72, "F": 36, "P": 48}
    assert sum(counts.values()) - counts["P"] == 306


def test_every_run_and_block_has_an_id_of_its_own(blocks):
    runs = {block.run_id(source.prompt) for block in blocks for source in block.prompts}
    assert len(runs) == 354
    assert len({block.block for block in blocks}) == len(blocks) == 90


def test_every_speculative_run_has_one_baseline_of_its_target_prompt_and_repeat(
    blocks, study, root
):
    suites = load(study, root).baseline_suites
    baselines = Counter(
        (block.suite, block.target, source.prompt, block.repeat)
        for block in blocks
        if not block.has_draft
        for source in block.prompts
    )
    for block in blocks:
        if block.has_draft:
            for source in block.prompts:
                key = (suites[block.suite], block.target, source.prompt, block.repeat)
                assert baselines[key] == 1


def test_blocks_without_a_draft_have_method_none_and_gamma_zero(blocks):
    for block in blocks:
        assert block.has_draft != (block.method == Method.NONE)
        assert block.has_draft != (block.gamma == 0)


def test_a_passage_prompt_states_its_exact_length(blocks):
    [block] = [b for b in blocks if b.block == "F/moe_q4/none/g0/r0"]
    assert sorted(source.length for source in block.prompts) == [32, 64, 128, 256, 512, 1024]


def test_prompts_are_shuffled_within_blocks_and_differently_in_each(blocks):
    orders = {tuple(s.prompt for s in block.prompts) for block in blocks if block.suite == "B"}
    assert len(orders) > 1


def test_the_order_takes_repeat_after_repeat_and_mixes_suites_within_each(blocks):
    ordered = schedule(blocks, {}, seed=1)
    assert [block.repeat for block in ordered] == sorted(block.repeat for block in blocks)
    first = [block.suite for block in ordered if block.repeat == 0]
    assert first != sorted(first)


@pytest.mark.parametrize("order", Order)
def test_runs_and_their_baselines_are_close_in_time(order, blocks, study, root):
    suites = load(study, root).baseline_suites
    ordered = schedule(blocks, suites, 1, order)
    homes = [(one.repeat, one.target, suites.get(one.suite, one.suite)) for one in ordered]
    assert len([here for here, _ in groupby(homes)]) == len(set(homes)) < len(blocks)


def test_by_target_each_is_measured_in_one_go_within_a_repeat(blocks):
    ordered = schedule(blocks, {}, 1, Order.BY_TARGET)
    assert [block.repeat for block in ordered] == sorted(block.repeat for block in blocks)
    gone = [(block.repeat, block.target) for block in ordered]
    stretches = [here for here, _ in groupby(gone)]
    assert len(stretches) == len(set(gone))
    suites = [block.suite for block in ordered if (block.repeat, block.target) == (0, "moe_q4")]
    assert suites != sorted(suites)


def blocks_of(suite, study, root, **changes):
    study["suites"][suite] |= changes
    return [block for block in list_blocks(load(study, root), gpu=False) if block.suite == suite]


def test_itself_stands_for_every_targets_own_name(study, root):
    blocks = blocks_of("D", study, root, drafts=["itself"])
    pairs = {(block.target, block.draft) for block in blocks}
    assert pairs == {("dense_4b", "dense_4b"), ("dense_9b", "dense_9b")}


def test_imposed_acceptance_multiplies_only_blocks_with_a_draft(study, root):
    blocks = blocks_of("F", study, root, imposed_acceptance=[0, 0.5, 1])
    assert Counter(block.imposed_acceptance for block in blocks) == {None: 3, 0: 3, 0.5: 3, 1: 3}
    assert blocks[-1].block == "F/moe_q4/draft_0.8b/g8/a1/r2"
    assert len({block.block for block in blocks}) == 12


def test_repeats_at_a_temperature_are_samples_and_greedy_ones_are_not(study, root):
    blocks = blocks_of("F", study, root, drafts=["none"], temperatures=[0, 0.7])
    seeds = {block.block: block.seed for block in blocks}
    assert [seeds[f"F/moe_q4/none/g0/t0/r{repeat}"] for repeat in range(3)] == [42, 42, 42]
    assert [seeds[f"F/moe_q4/none/g0/t0.7/r{repeat}"] for repeat in range(3)] == [42, 43, 44]


def test_another_gamma_adds_blocks_and_changes_no_other(study, root):
    before = {block.block: block for block in list_blocks(load(study, root), gpu=False)}
    study["suites"]["D"]["gammas"] = [4, 8, 16, 32]
    after = {block.block: block for block in list_blocks(load(study, root), gpu=False)}
    assert all(after[name] == block for name, block in before.items())
    assert {block.gamma for name, block in after.items() if name not in before} == {32}


@given(names=st.sets(st.text(min_size=1), min_size=2, max_size=30), seed=st.integers())
def test_removing_blocks_keeps_the_order_of_the_others(names, seed):
    blocks = [replace(baseline(), block=name) for name in names]
    kept = blocks[::2]
    whole = [b.block for b in schedule(blocks, {}, seed) if b in kept]
    assert whole == [b.block for b in schedule(kept, {}, seed)]


@given(names=st.permutations([f"block-{i}" for i in range(12)]))
def test_the_order_does_not_depend_on_the_order_of_the_config(names):
    blocks = [replace(baseline(), block=name) for name in names]
    assert [b.block for b in schedule(blocks, {}, 1)] == [
        b.block for b in schedule(sorted(blocks, key=lambda b: b.block), {}, 1)
    ]


def test_only_a_gpu_backend_puts_layers_on_the_gpu(study, root):
    config = load(study, root)
    assert {block.gpu_layers for block in list_blocks(config, gpu=True)} == {99}
    assert {block.gpu_layers for block in list_blocks(config, gpu=False)} == {0}


def test_a_block_survives_a_round_trip_as_json(blocks):
    assert all(parse(Block, block.to_json()) == block for block in blocks)
