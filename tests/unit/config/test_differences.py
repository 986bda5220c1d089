"""What a measurement says of itself is compared with what is asked for, fact by fact."""

import json
from dataclasses import MISSING, fields, replace

import numpy as np
import pandas as pd
import pytest

from specmoe.config.block import Block, PromptSource, Side
from specmoe.config.differences import block_changes, differences

from ...blocks import alone, compared

PROMPTS = alone().prompts
MANY = tuple(PromptSource(f"p{number}", "mine.txt") for number in range(50))
SIDES = compared().sides


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (alone(), {}, ""),
        (alone(), {"prompts": (*PROMPTS, MANY[0])}, "prompt added: p0"),
        (alone(prompts=(*PROMPTS, MANY[0])), {"prompts": PROMPTS}, "prompt left out: p0"),
        (alone(), {"prompts": PROMPTS[::-1]}, "prompts in another order"),
        (
            alone(),
            {"prompts": (*PROMPTS, *MANY)},
            ", ".join(f"prompt added: p{number}" for number in range(5)) + ", and 45 more",
        ),
        (
            compared(),
            {"sides": (*SIDES, Side(8), Side(8, 0.5))},
            "side added: g8, side added: g8-a0.5",
        ),
        (alone(), {"n_predict": 64}, "n_predict: 32 before, 64 now"),
    ],
)
def test_what_changed_of_a_block_is_said(before, now, says):
    changes = block_changes(json.loads(before.to_json()), replace(before, **now))
    assert ", ".join(changes) == says


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ({}, ""),
        ({"engine_args": ("--mlock",)}, "engine_args: [] before, ['--mlock'] now"),
        ({"environment": {"A": "1"}}, "environment: {} before, {'A': '1'} now"),
    ],
)
def test_an_older_release_measured_what_it_did_not_know_as_its_default_says(now, says):
    block = replace(compared(), **now)
    asked = json.loads(block.to_json())
    for key in ("gate", *(field.name for field in fields(Block) if field.default is not MISSING)):
        asked.pop(key, None)
    for key in ("environment", "sendings"):
        asked.pop(key, None)
    for prompt in asked["prompts"]:
        for key in ("line", "workload", "category"):
            del prompt[key]
    assert ", ".join(block_changes(asked, block)) == says


@pytest.mark.parametrize(
    ("found", "asked", "said"),
    [
        ({"seed": 1}, {"seed": 1}, []),
        ({"seed": 1, "speed": 2.0}, {"seed": 1}, []),
        ({"seed": 1}, {"seed": 2}, ["seed is 1, not 2"]),
        ({}, {"seed": 2, "host": "a"}, ["seed is None, not 2", "host is None, not a"]),
        ({"rate": float("nan"), "count": pd.NA}, {"rate": None, "count": None}, []),
        ({"rate": float("nan")}, {"rate": 0.5}, ["rate is None, not 0.5"]),
        ({"rates": np.array([0.5, 0.25])}, {"rates": (0.5, 0.25)}, []),
        ({"rates": [0.5]}, {"rates": (0.5, 0.25)}, ["rates is [0.5], not (0.5, 0.25)"]),
        ({"host": "a"}, {"host": frozenset({"a", "b"})}, []),
        ({"host": "c"}, {"host": frozenset({"a", "b"})}, ["host is c, not a or b"]),
        ({"host": None}, {"host": frozenset({"a"})}, ["host is None, not a"]),
        ({"engine": "x"}, {"engine": frozenset()}, ["engine is x, not described"]),
        ({"sha": "ab" * 32}, {"sha": "cd" * 32}, ["sha is abababababab, not cdcdcdcdcdcd"]),
    ],
)
def test_facts_that_are_asked_for_and_are_not_so_are_named(found, asked, said):
    assert [str(one) for one in differences(found, asked)] == said
