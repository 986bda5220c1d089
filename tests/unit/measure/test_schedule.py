"""Every arm sends every prompt in every pass once; the order is seeded and favours no arm."""

from collections import Counter
from dataclasses import replace
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.block import PromptSource
from specmoe.measure.block import turns_of

from ...blocks import ALONE, compared, drafted

SIDES = (ALONE, drafted(4), drafted(8), drafted(8, 0.5))
PROMPTS = tuple(PromptSource(name, f"{name}.txt") for name in "abcd")
BLOCK = compared(arms=SIDES, prompts=PROMPTS, prompt_iterations=3)


def together(block):
    return turns_of(block, block.arms, interleaved=True)


def sequential(block):
    return turns_of(block, block.arms, interleaved=False)


ORDERS = [together, sequential]


@pytest.mark.parametrize("order", ORDERS)
@given(
    arms=st.sets(st.sampled_from(SIDES), min_size=1),
    prompts=st.sets(st.sampled_from(PROMPTS), min_size=1),
    iterations=st.integers(1, 4),
    seed=st.integers(),
    repeat=st.integers(0, 5),
    concurrency=st.none() | st.just(2),
)
def test_every_arm_sends_every_prompt_in_every_pass_exactly_once(
    order, arms, prompts, iterations, **more
):
    more["order_seed"] = more.pop("seed")
    more |= {"prompt_iterations": iterations}
    block = compared(arms=tuple(arms), prompts=tuple(prompts), **more)
    turns = order(block)
    assert len(turns) == block.runs / (len(prompts) if block.concurrency else 1)
    sent = [(arm, source, number) for arm, sources, number, _ in turns for source in sources]
    assert Counter(sent) == Counter(product(arms, prompts, range(iterations)))


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_is_seeded_and_differs_between_blocks(order):
    assert order(BLOCK) == order(BLOCK)
    others = [replace(BLOCK, order_seed=2), replace(BLOCK, block="B/another/r0")]
    assert all(order(other) != order(BLOCK) for other in others)
    assert order(replace(BLOCK, prompts=PROMPTS[::-1])) == order(BLOCK)  # of the configuration


def test_together_the_arms_take_turns_prompt_by_prompt_and_none_is_always_first():
    stretches = [
        (prompt, [turn.arm for turn in turns])
        for prompt, turns in groupby(together(BLOCK), lambda turn: (turn[2], turn[1]))
    ]
    assert len(stretches) == BLOCK.prompt_iterations * len(PROMPTS)
    assert all(set(arms) == set(SIDES) for _, arms in stretches)
    assert [number for (number, _), _ in stretches] == sorted([0, 1, 2] * len(PROMPTS))
    turns = together(replace(BLOCK, prompt_iterations=25))
    firsts = Counter(turn.arm for turn in turns[:: len(SIDES)])
    # Of 100 first places, each of four arms has 25 on average, with a standard deviation of 4.3.
    assert set(firsts) == set(SIDES)
    assert all(12 <= count <= 38 for count in firsts.values())


def test_in_turn_one_arm_follows_the_other_in_an_order_that_turns_round():
    orders = [
        [arm for arm, _ in groupby(sequential(replace(BLOCK, repeat=repeat)), lambda t: t[0])]
        for repeat in range(4)
    ]
    assert orders == [[*SIDES], [*SIDES[::-1]]] * 2
    by_arm = [
        [(turn.sources, turn.iteration) for turn in turns]
        for _, turns in groupby(sequential(BLOCK), lambda turn: turn.arm)
    ]
    assert all(one == by_arm[0] for one in by_arm)
