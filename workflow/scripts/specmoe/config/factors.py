"""Factors that a suite may vary: each is one entry of `FACTORS`; a new one needs no other code.

A suite gives `vary: {temperature: [0, 0.7]}`. A row has the text of its level, which is also a part
of its block's id and the word on an axis.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from specmoe.config.base import first_error
from specmoe.config.block import Block, PromptSource
from specmoe.config.engines import EngineArgs
from specmoe.errors import nearest


@dataclass(frozen=True)
class Factor:
    """Something that a suite varies."""

    label: str  # of an axis or a column
    kind: Any  # of a level, as pydantic reads it
    # Returns the block at a level: with other words of the servers, requests or load. Where levels
    # share a block, which has no baseline for each, it returns that with the prompts or arms of
    # all levels.
    change: Callable[[Block, Any], Block]
    shares_block: bool = False
    unit: str = ""  # of a level
    text: Callable[[Any], str] = "{:g}".format  # of a level


def _set_lengths(block: Block, lengths: list[int]) -> Block:
    prompts = (replace(PromptSource.of_length(length), level=f"{length}") for length in lengths)
    return replace(block, prompts=tuple(prompts))


def _force_acceptance(block: Block, shares: list[float]) -> Block:
    arms = (
        replace(arm, forced_acceptance=share, level=f"{share:g}") if arm.speculates else arm
        for arm in block.arms
        for share in shares
    )
    return replace(block, arms=tuple(dict.fromkeys(arms)))


def _set_thinking(block: Block, thinking: bool) -> Block:
    sent = {name: replace(how, thinking=thinking) for name, how in block.sendings.items()}
    return replace(block, sendings=sent)


THINKING = {"on": True, "off": False}
"""What a template is told at the levels of factor `thinking`; no other factor has these words."""
TURNS = ["first", "later"]
"""The levels of a chat's turns: later ones find the beginning of their prompt in the cache."""

FACTORS: dict[str, Factor] = {
    "prompt_tokens": Factor(
        "Prompt length", Annotated[int, Field(gt=0)], _set_lengths, shares_block=True, unit="tokens"
    ),
    "temperature": Factor(
        "Temperature",
        Annotated[float, Field(ge=0)],
        lambda block, level: replace(block, temperature=level),
    ),
    "forced_acceptance": Factor(
        "Forced acceptance",
        Annotated[float, Field(ge=0, le=1)],
        _force_acceptance,
        shares_block=True,
    ),
    # A load, even of a single client; without this factor requests follow one another.
    "requests": Factor(
        "Requests at once",
        Annotated[int, Field(ge=1, le=64)],
        lambda block, clients: replace(block, concurrency=clients),
    ),
    "thinking": Factor("Thinking", bool, _set_thinking, text=["off", "on"].__getitem__),
    "engine_args": Factor(
        "Options of the engine",
        EngineArgs,
        lambda block, words: replace(block, engine_args=(*block.engine_args, *words)),
        text=lambda words: shlex.join(words) or "none",
    ),
}


def _check_levels(vary: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return a suite's factor with its levels in their types; raises ValueError."""
    if len(vary) > 1:
        raise ValueError(f"a suite varies one thing, not {' and '.join(vary)}")
    for name, levels in vary.items():
        if (factor := FACTORS.get(name)) is None:
            raise ValueError(f"unknown factor {name!r}; {nearest(name, FACTORS)}")
        if not levels:
            raise ValueError(f"{name} has no levels; give one at least, or leave it out")
        try:
            vary = {name: TypeAdapter(list[factor.kind]).validate_python(levels)}  # type: ignore[name-defined]
        except ValidationError as error:
            raise ValueError(f"{name}.{first_error(error)}") from error
        texts = [*map(factor.text, vary[name])]
        if len(set(texts)) < len(texts):
            raise ValueError(f"{name}: a level is named twice")
    return vary


Vary = Annotated[
    dict[Annotated[str, WithJsonSchema({"type": "string", "enum": [*FACTORS]})], list[Any]],
    AfterValidator(_check_levels),
]


def at_levels(block: Block, vary: dict[str, list[Any]]) -> list[Block]:
    """Return what a suite's block becomes: one with all levels, or one for each of them."""
    if not vary:
        return [block]
    [(name, levels)] = vary.items()
    factor = FACTORS[name]
    block = replace(block, factor=name)
    if factor.shares_block:
        return [factor.change(block, levels)]
    return [replace(factor.change(block, level), level=factor.text(level)) for level in levels]
