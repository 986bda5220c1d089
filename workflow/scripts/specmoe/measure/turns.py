"""Who runs when: the order of a block's runs, which is seeded."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from specmoe.config.block import Block, PromptSource, Side
from specmoe.config.shuffle import shuffle_key

T = TypeVar("T", Side, PromptSource)


class Turn(NamedTuple):
    """One run of a block."""

    side: Side
    source: PromptSource
    number: int  # of the pass through the prompts


def turns_together(block: Block) -> list[Turn]:
    """Return a block's runs in order where all sides are live.

    In each pass the prompts come in random order, and for each prompt the sides take turns in
    random order, so that a run and its baseline lie seconds apart.
    """
    return [
        Turn(side, source, number)
        for number in range(block.passes)
        for source in _shuffled(block, block.prompts, f"p{number}")
        for side in _shuffled(block, block.sides, f"p{number}/{source.prompt}")
    ]


def turns_in_turn(block: Block) -> list[Turn]:
    """Return a block's runs in order where sides follow one another.

    The sides' order turns round from repeat to repeat, so that what drifts steadily favours none.
    """
    return [
        Turn(side, source, number)
        for side in (block.sides if block.repeat % 2 == 0 else reversed(block.sides))
        for number in range(block.passes)
        for source in _shuffled(block, block.prompts, f"p{number}")
    ]


def _shuffled(block: Block, members: Sequence[T], where: str) -> list[T]:
    def key(member: T) -> bytes:
        return shuffle_key(block.order_seed, f"{block.block}/{where}/{member}")

    return sorted(members, key=key)
