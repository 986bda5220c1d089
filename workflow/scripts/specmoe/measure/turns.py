"""Who runs when: the order of a block's runs, seeded, and the start of their records."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from specmoe.config.block import Block, PromptSource, Side, shuffle_key

T = TypeVar("T", Side, PromptSource)


class Turn(NamedTuple):
    """A run of a block; or a load, see `measure.load`, which goes once through the prompts."""

    side: Side
    sources: tuple[PromptSource, ...]  # one; those of a load in the order in which they are sent
    number: int  # of the pass through the prompts


def turns_together(block: Block) -> list[Turn]:
    """Return a block's turns in order where all sides are live.

    In each pass the prompts come in random order, and for each prompt the sides take turns in
    random order, so that a run and its baseline are seconds apart.
    """
    return [
        Turn(side, sources, number)
        for number in range(block.passes)
        for where, sources in _queue(block, number)
        for side in _shuffled(block, block.sides, where)
    ]


def turns_in_turn(block: Block) -> list[Turn]:
    """Return a block's turns in order where sides follow one another.

    The sides' order turns round from repeat to repeat, so that what drifts steadily favours none.
    """
    return [
        Turn(side, sources, number)
        for side in (block.sides if block.repeat % 2 == 0 else block.sides[::-1])
        for number in range(block.passes)
        for _, sources in _queue(block, number)
    ]


def _queue(block: Block, number: int) -> list[tuple[str, tuple[PromptSource, ...]]]:
    """Return what is sent at once in a pass, with its place; prompts are in random order."""
    place = f"p{number}"
    sources = _shuffled(block, block.prompts, place)
    if block.concurrency is not None:
        return [(place, tuple(sources))]
    return [(f"{place}/{source.prompt}", (source,)) for source in sources]


def _shuffled(block: Block, members: Sequence[T], where: str) -> list[T]:
    def key(member: T) -> bytes:
        return shuffle_key(block.order_seed, f"{block.block}/{where}/{member}")

    return sorted(members, key=key)


def about_run(block: Block, turn: Turn, source: PromptSource, order: int) -> dict[str, Any]:
    """Return what is known of a run before it is measured; `order` is its place in the block."""
    return {
        "run": block.run_id(turn.side, source.prompt, turn.number),
        "side": turn.side.name,
        "order": order,
        "load_average": os.getloadavg()[0],
    }
