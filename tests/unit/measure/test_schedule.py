"""Each setting is measured beside the baseline, prompt by prompt, in seeded orders."""

from collections import Counter
from dataclasses import replace
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.block import PromptSource
from specmoe.measure.block import turns_of

from ...blocks import ALONE, compared, drafted

SETTINGS = (drafted(4), drafted(8), drafted(8, 0.5))
PROMPTS = tuple(PromptSource(name, f"{name}.txt") for name in "abcd")
BLOCK = compared(arms=(ALONE, *SETTINGS), prompts=PROMPTS)
either_way = pytest.mark.parametrize("together", [True, False])


def turns(block, together):
    return [*turns_of(block, together=together)]


@either_way
@given(
    settings=st.sets(st.sampled_from(SETTINGS)),
    prompts=st.sets(st.sampled_from(PROMPTS), min_size=1),
    seed=st.integers(),
    repeat=st.integers(0, 5),
    concurrency=st.none() | st.just(2),
)
def test_each_setting_and_a_baseline_beside_it_send_every_prompt_once(
    together, settings, prompts, seed, **more
):
    arms = (ALONE, *settings)
    block = compared(arms=arms, prompts=tuple(prompts), order_seed=seed, **more)
    found = turns(block, together)
    assert len(found) == block.runs / (len(prompts) if block.concurrency else 1)
    sent = Counter((turn.arm, source) for turn in found for source in turn.sources)
    beside = max(len(settings), 1)
    assert sent == {
        (arm, source): 1 if arm.speculates else beside for arm, source in product(arms, prompts)
    }
    for number, group in groupby(found, lambda turn: turn.group):
        assert {turn.arm for turn in group} == {*block.groups[number]}
    if not together:  # without memory for both, one follows the other
        assert all(turn.live == (turn.arm,) for turn in found)
        stretches = [key for key, _ in groupby(found, lambda turn: (turn.group, turn.arm))]
        assert len(stretches) == len({*stretches})


@either_way
def test_the_order_is_seeded_and_differs_between_blocks(together):
    assert turns(BLOCK, together) == turns(BLOCK, together)
    others = [replace(BLOCK, order_seed=2), replace(BLOCK, block="B/another/r0")]
    assert all(turns(other, together) != turns(BLOCK, together) for other in others)
    reordered = replace(BLOCK, prompts=PROMPTS[::-1])  # of the configuration
    assert turns(reordered, together) == turns(BLOCK, together)


def test_at_most_a_setting_and_the_baseline_are_live_and_take_turns():
    many = [replace(BLOCK, block=f"B/target/r{repeat}") for repeat in range(20)]
    firsts: Counter[bool] = Counter()
    for block in many:
        found = turns(block, together=True)
        assert all({*turn.live} == {*block.groups[turn.group]} for turn in found)
        for first, second in zip(found[::2], found[1::2], strict=True):
            assert first.sources == second.sources
            assert {first.arm, second.arm} == {*first.live}
            firsts[first.arm.speculates] += 1
    # Of 240 first places, each has 120 on average, with a standard deviation of 8.
    assert 90 < firsts[True] < 150
