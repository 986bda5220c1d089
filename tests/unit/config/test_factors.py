"""Factors of a suite: their levels, the blocks that follow, and ids."""

import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import PositiveInt

from specmoe.config.block import level_id
from specmoe.config.factors import FACTORS, Factor, at_levels
from specmoe.config.matrix import every_block, list_timed_passes

KV = ["--cache-type-k", "q8_0", "--cache-type-v", "q8_0"]
MOE = ["--n-cpu-moe", 2]


@pytest.mark.parametrize(
    ("factor", "levels", "ids", "differs"),
    [
        ("temperature", [0, 0.7], ["0", "0.7"], lambda block: block.temperature),
        ("requests", [1, 2], ["1", "2"], lambda block: str(block.slots)),
        (
            "engine_args",
            [[], KV, MOE],
            ["none", "--cache-type-k+q8_0+--cache-type-v+q8_0", "--n-cpu-moe+2"],
            lambda block: block.engine_args,
        ),
    ],
)
def test_each_level_is_a_comparison_with_the_target_alone(first, factor, levels, ids, differs):
    blocks = first(vary={factor: levels}, prompts=["code", "chinese"])
    assert [block.block for block in blocks] == [f"own/qwen3.5-35b-a3b-q4/{one}/r0" for one in ids]
    assert len({differs(block) for block in blocks}) == len(levels)
    for block in blocks:
        assert [arm.name for arm in block.arms] == ["baseline", "qwen3.5-0.8b-q8/g4"]
        assert (block.target, block.factor) == ("qwen3.5-35b-a3b-q4", factor)
        assert {block.level_of(arm, block.prompts[0]) for arm in block.arms} == {block.level}


@pytest.mark.parametrize(
    ("factor", "levels", "found"),
    [
        ("prompt_tokens", [8, 16], {*product(("baseline", "g4"), ("8", "16"))}),
        ("forced_acceptance", [0, 0.5], {("baseline", None), ("g4-a0", "0"), ("g4-a0.5", "0.5")}),
    ],
)
def test_prompts_and_arms_of_all_levels_share_a_block(first, factor, levels, found):
    texts = {"prompts": []} if factor == "prompt_tokens" else {}
    [block] = first(vary={factor: levels}, **texts)
    assert block.block == "own/qwen3.5-35b-a3b-q4/r0"
    assert found == {
        (arm.name.removeprefix("qwen3.5-0.8b-q8/"), block.level_of(arm, source))
        for arm in block.arms
        for source in block.prompts
    }


@pytest.mark.parametrize(("levels", "timed"), [([MOE], []), ([MOE, []], [(*KV,), ()])])
def test_the_campaigns_options_are_before_those_of_a_level_and_time_passes(planned, levels, timed):
    config = planned({"measurement": {"engine_args": KV}}, vary={"engine_args": levels})
    blocks = every_block(config)
    due = {(*KV, *map(str, level)) for level in levels}
    assert {block.engine_args for block in blocks} == due
    passes = list_timed_passes(config, blocks)
    assert [one.engine_args for one in passes] == timed  # of the target, and of its draft model


def test_arms_with_words_of_their_own_have_ids_and_no_timed_passes(planned):
    few = {"method": "draft", "drafts": ["qwen3.5-0.8b-q8"], "engine_args": KV}
    config = planned(drafts=[], methods=[few, few | {"engine_args": []}], prompts=["code"])
    [block] = (block for block in every_block(config) if block.repeat == 0)
    assert [arm.name for arm in block.arms] == [
        "baseline",
        "qwen3.5-0.8b-q8/g4+--cache-type-k+q8_0+--cache-type-v+q8_0",
        "qwen3.5-0.8b-q8/g4",
    ]
    assert [arm.words for arm in block.arms] == [(), (*KV,), ()]
    assert [block.is_timed(arm) for arm in block.arms] == [True, False, True]
    assert not list_timed_passes(config, [replace(block, arms=block.arms[:2])])
    assert repr(block.arms[1]) == repr(block.arms[2])  # so that orders stay


def test_another_factor_is_one_entry(first, monkeypatch):
    change = lambda block, n_tokens: replace(block, engine_args=("-ub", f"{n_tokens}"))  # noqa: E731
    monkeypatch.setitem(FACTORS, "ubatch", Factor("Batch", PositiveInt, change, unit="tokens"))
    blocks = at_levels(*first(), {"ubatch": [64, 512]})
    assert [block.level for block in blocks] == ["64", "512"]
    assert [block.engine_args for block in blocks] == [("-ub", "64"), ("-ub", "512")]


@given(st.text(min_size=1, max_size=90))
def test_the_id_of_a_level_is_a_part_of_a_path(text):
    assert re.fullmatch(r"[A-Za-z0-9._=+-]{1,80}", level_id(text))
