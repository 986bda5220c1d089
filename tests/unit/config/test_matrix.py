"""The matrix of blocks and their order follow from the configuration."""

from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.block import Block, History, Side
from specmoe.config.load import load
from specmoe.config.matrix import (
    added_runs,
    comparison_of,
    left_out_blocks,
    list_blocks,
    schedule,
)
from specmoe.config.measurement import Order
from specmoe.config.parse import parse

from ...blocks import alone


@pytest.fixture
def blocks(study, root):
    return list_blocks(load(study, root), gpu=False)


def runs_of(blocks):
    """Return side, prompt and pass of every run, with its block."""
    return [
        (block, side, source.prompt, number)
        for block in blocks
        for side in block.sides
        for source in block.prompts
        for number in range(block.passes)
    ]


def test_the_study_has_the_runs_of_the_papers_table_3_and_72_of_targets_alone(blocks, study, root):
    counts = Counter(block.suite for block, *_ in runs_of(blocks))
    # B and D name no draft `none`: the paper has 144 and 72 runs with a draft.
    assert counts == {"A": 18, "B": 144 + 48, "C": 36, "D": 72 + 24, "F": 36}
    assert sum(block.runs for block in blocks) == sum(counts.values()) == 378
    assert added_runs(blocks, load(study, root)) == 72
    assert 378 - 72 == 306


def test_what_is_left_out_is_listed_by_itself(blocks, study, root):
    study["campaign"]["left_out"] = ["B/moe_q8/draft_2b", "C/dense_9b/none/r1"]
    config = load(study, root)
    left_out = [block.block for block in left_out_blocks(config)]
    whole = [f"B/moe_q8/draft_2b/r{repeat}" for repeat in range(3)]
    assert left_out == [*whole, "C/dense_9b/none/r1"]
    kept = {block.block for block in list_blocks(config, gpu=False)}
    assert kept == {block.block for block in blocks} - {*left_out}


def test_every_run_and_block_has_an_id_of_its_own(blocks):
    runs = {block.run_id(*run) for block, *run in runs_of(blocks)}
    assert len(runs) == 378
    assert len({block.block for block in blocks}) == len(blocks) == 39
    assert "B/moe_q4/draft_0.8b/r0/g8/code/p0" in runs


def test_every_run_with_a_draft_has_its_baseline_in_its_own_block(blocks):
    for block in blocks:
        assert block.measures_alone
        assert block.sides[0] == Side()
        assert len(set(block.sides)) == len(block.sides)


def test_a_comparison_has_the_target_alone_and_every_gamma(blocks):
    [block] = [b for b in blocks if b.block == "D/dense_4b/draft_0.8b/r1"]
    assert [side.name for side in block.sides] == ["alone", "g4", "g8", "g16"]
    assert block.runs == 4 * 4


def test_a_block_without_a_draft_has_method_none_and_the_target_alone(blocks):
    for block in blocks:
        assert block.speculates == (block.draft != "none") == (block.draft_model is not None)
        assert block.speculates != (block.sides == (Side(),))


def test_no_draft_beside_others_adds_no_block_and_counts_these_runs_as_the_suites_own(
    study, root, blocks
):
    assert {block.draft for block in blocks if block.suite == "F"} == {"draft_0.8b"}
    study["suites"]["D"]["drafts"] = ["none", "draft_0.8b"]
    config = load(study, root)
    assert list_blocks(config, gpu=False) == blocks
    assert added_runs(blocks, config) == 48


def test_the_studys_commands_measure_the_target_alone_only_where_a_suite_names_it(study, root):
    study["measurement"]["protocol"] = "published"
    found = list_blocks(load(study, root), gpu=False)
    sides = {block.suite: [side.name for side in block.sides] for block in found}
    assert sides["B"] == sides["D"] == ["g4", "g8", "g16"]
    assert sides["F"] == ["alone", "g8"]
    assert sides["A"] == ["alone"]
    assert sum(block.runs for block in found) == 306
    assert added_runs(found, load(study, root)) == 0


def test_passes_multiply_the_runs_but_not_those_of_the_studys_commands(study, root):
    study["measurement"]["passes"] = 2
    study["suites"]["F"] |= {"protocol": "published", "engine": "march"}
    found = list_blocks(load(study, root), gpu=False)
    assert {block.suite: block.passes for block in found} == dict.fromkeys("ABCD", 2) | {"F": 1}
    assert sum(block.runs for block in found) == 2 * (378 - 36) + 36


def test_a_warm_up_is_no_longer_than_a_run(study, root):
    study["measurement"] |= {"n_predict": 8, "warmup_tokens": 16}
    assert {block.warmup_tokens for block in list_blocks(load(study, root), gpu=False)} == {8}


def test_a_passage_prompt_states_its_exact_length(blocks):
    [block] = [b for b in blocks if b.block == "F/moe_q4/draft_0.8b/r0"]
    assert [source.length for source in block.prompts] == [32, 64, 128, 256, 512, 1024]


def test_the_order_takes_repeat_after_repeat_and_mixes_suites_within_each(blocks):
    ordered = schedule(blocks, seed=1)
    assert [block.repeat for block in ordered] == sorted(block.repeat for block in blocks)
    first = [block.suite for block in ordered if block.repeat == 0]
    assert first != sorted(first)


def test_by_target_each_is_measured_in_one_go_within_a_repeat(blocks):
    ordered = schedule(blocks, 1, Order.BY_TARGET)
    assert [block.repeat for block in ordered] == sorted(block.repeat for block in blocks)
    gone = [(block.repeat, block.target) for block in ordered]
    stretches = [here for here, _ in groupby(gone)]
    assert len(stretches) == len(set(gone))
    suites = [
        "".join(block.suite for block in ordered if (block.repeat, block.target) == (0, target))
        for target in ("moe_q4", "moe_q8", "dense_4b", "dense_9b")
    ]
    assert any(list(mixed) != sorted(mixed) for mixed in suites)


def blocks_of(suite, study, root, **changes):
    study["suites"][suite] |= changes
    return [block for block in list_blocks(load(study, root), gpu=False) if block.suite == suite]


def test_itself_stands_for_every_targets_own_name(study, root):
    blocks = blocks_of("D", study, root, drafts=["itself"])
    pairs = {(block.target, block.draft) for block in blocks}
    assert pairs == {("dense_4b", "dense_4b"), ("dense_9b", "dense_9b")}


def test_imposed_acceptance_multiplies_only_sides_with_a_draft(study, root):
    blocks = blocks_of("F", study, root, imposed_acceptance=[0, 0.5, 1])
    assert len(blocks) == 3
    names = [side.name for side in blocks[0].sides]
    assert names == ["alone", "g8-a0", "g8-a0.5", "g8-a1"]
    assert [side.imposed_acceptance for side in blocks[0].sides] == [None, 0, 0.5, 1]


def test_answers_are_streamed_where_asked_but_for_methods_that_remember(study, root):
    [block, *_] = blocks_of("F", study, root)
    assert not block.streams
    streamed = replace(block, token_times=True)
    assert streamed.streams
    remembers = replace(Side(8), history=History.EARLIER)
    assert not replace(streamed, sides=(*block.sides, remembers)).streams


def test_every_temperature_is_a_comparison_with_its_own_baseline(study, root):
    blocks = blocks_of("F", study, root, temperatures=[0, 0.7])
    assert {comparison_of(block.block) for block in blocks} == {
        "F/moe_q4/draft_0.8b/t0",
        "F/moe_q4/draft_0.8b/t0.7",
    }
    assert all(block.measures_alone for block in blocks)


def test_repeats_at_a_temperature_are_samples_and_greedy_ones_are_not(study, root):
    blocks = blocks_of("F", study, root, drafts=["none"], temperatures=[0, 0.7])
    seeds = {block.block: block.seed for block in blocks}
    assert [seeds[f"F/moe_q4/none/t0/r{repeat}"] for repeat in range(3)] == [42, 42, 42]
    assert [seeds[f"F/moe_q4/none/t0.7/r{repeat}"] for repeat in range(3)] == [42, 43, 44]


def test_more_repeats_add_blocks_to_one_comparison_alone(study, root, blocks):
    study["measurement"]["more_repeats"] = {"B/moe_q4/draft_2b": 5}
    found = list_blocks(load(study, root), gpu=False)
    added = {block.block for block in found} - {block.block for block in blocks}
    assert added == {f"B/moe_q4/draft_2b/r{repeat}" for repeat in (3, 4)}


def test_another_gamma_changes_the_blocks_of_its_suite_and_no_other(study, root):
    before = {block.block: block for block in list_blocks(load(study, root), gpu=False)}
    study["suites"]["D"]["gammas"] = [4, 8, 16, 32]
    after = {block.block: block for block in list_blocks(load(study, root), gpu=False)}
    assert after.keys() == before.keys()
    changed = {name for name, block in after.items() if before[name] != block}
    assert changed == {name for name in after if name.startswith("D/")}


@given(names=st.sets(st.text(min_size=1), min_size=2, max_size=30), seed=st.integers())
def test_removing_blocks_keeps_the_order_of_the_others(names, seed):
    blocks = [replace(alone(), block=name) for name in names]
    kept = blocks[::2]
    whole = [b.block for b in schedule(blocks, seed) if b in kept]
    assert whole == [b.block for b in schedule(kept, seed)]


@given(names=st.permutations([f"block-{i}" for i in range(12)]))
def test_the_order_does_not_depend_on_the_order_of_the_config(names):
    blocks = [replace(alone(), block=name) for name in names]
    assert [b.block for b in schedule(blocks, 1)] == [
        b.block for b in schedule(sorted(blocks, key=lambda b: b.block), 1)
    ]


def test_only_a_gpu_backend_puts_layers_on_the_gpu(study, root):
    config = load(study, root)
    assert {block.gpu_layers for block in list_blocks(config, gpu=True)} == {99}
    assert {block.gpu_layers for block in list_blocks(config, gpu=False)} == {0}


def test_a_block_survives_a_round_trip_as_json(blocks):
    assert all(parse(Block, block.to_json()) == block for block in blocks)
