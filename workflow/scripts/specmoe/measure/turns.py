"""Who runs when: the order of a block's runs, which is seeded."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from specmoe.config.block import Block, PromptSource, Side, shuffle_key

T = TypeVar("T", Side, PromptSource)


class Turn(NamedTuple):
    """One run of a block."""

    side: Side
    source: PromptSource
    number: int  # of the pass through the prompts


class LoadTurn(NamedTuple):
    """One load of a block, see `measure.load`: a side that goes once through the prompts."""

    side: Side
    sources: tuple[PromptSource, ...]  # in the order in which they are sent
    number: int  # of the pass through the prompts


def loads_together(block: Block) -> list[LoadTurn]:
    """Return a block's loads in order where all sides are live: in each pass in random order."""
    return [
        LoadTurn(side, _queue(block, number), number)
        for number in range(block.passes)
        for side in _shuffled(block, block.sides, f"p{number}")
    ]


def loads_in_turn(block: Block) -> list[LoadTurn]:
    """Return a block's loads in order where sides follow one another, see `turns_in_turn`."""
    return [
        LoadTurn(side, _queue(block, number), number)
        for side in _from_repeat(block)
        for number in range(block.passes)
    ]


def _queue(block: Block, number: int) -> tuple[PromptSource, ...]:
    """Return the prompts of a pass in random order, the same for all sides."""
    return tuple(_shuffled(block, block.prompts, f"p{number}"))


def _from_repeat(block: Block) -> Sequence[Side]:
    return block.sides if block.repeat % 2 == 0 else block.sides[::-1]


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
        for side in _from_repeat(block)
        for number in range(block.passes)
        for source in _shuffled(block, block.prompts, f"p{number}")
    ]


def _shuffled(block: Block, members: Sequence[T], where: str) -> list[T]:
    def key(member: T) -> bytes:
        return shuffle_key(block.order_seed, f"{block.block}/{where}/{member}")

    return sorted(members, key=key)
