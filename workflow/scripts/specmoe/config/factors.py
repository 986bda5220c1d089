"""What a suite may vary: each factor is one entry of `FACTORS`, and nothing else knows its name.

A suite gives `vary: {temperature: [0, 0.7]}`. A row has the text of its level, which is also a part
of its block's id and the word on an axis.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from specmoe.config.base import NotNegative, Positive, first_fault
from specmoe.config.block import Block, PromptSource, Side
from specmoe.config.environment import EngineArgs
from specmoe.errors import nearest

# What may be a part of a file's name on every system, and of a block's id.
_SAFE = re.compile(r"[A-Za-z0-9._=+-]+")
_LONGEST_ID = 80  # characters; a file's name may have 255 bytes
_DIGITS = 8

T = TypeVar("T", PromptSource, Side)


@dataclass(frozen=True)
class Factor:
    """Something that a suite varies."""

    label: str  # of an axis or a column
    unit: str  # of a level; empty without one
    kind: Any  # of a level, as pydantic reads it
    # Returns the block at a level: with other words of the servers, requests, load, prompts or
    # sides.
    change: Callable[[Block, Any], Block]
    # Whether one block measures all levels, as its prompts or sides; else each has blocks of its
    # own, with baselines of its own.
    shares_block: bool = False
    text: Callable[[Any], str] = "{:g}".format  # of a level


def _forced(block: Block, share: float) -> Block:
    def forced(side: Side) -> Side:
        return replace(side, imposed_acceptance=share) if side.speculates else side

    return replace(block, sides=tuple(map(forced, block.sides)))


FACTORS: dict[str, Factor] = {
    "prompt_tokens": Factor(
        "Prompt length",
        "tokens",
        Positive,
        lambda block, length: replace(block, prompts=(PromptSource.of_length(length),)),
        shares_block=True,
    ),
    "temperature": Factor(
        "Temperature",
        "",
        NotNegative,
        lambda block, temperature: replace(block, temperature=temperature),
    ),
    "forced_acceptance": Factor(
        "Forced acceptance", "", Annotated[float, Field(ge=0, le=1)], _forced, shares_block=True
    ),
    # A load, even of a single client; without this factor requests follow one another.
    "requests": Factor(
        "Requests at once",
        "",
        Annotated[int, Field(ge=1, le=64)],
        lambda block, clients: replace(block, concurrency=clients),
    ),
    "engine_args": Factor(
        "Options of the engine",
        "",
        EngineArgs,
        lambda block, words: replace(block, engine_args=(*block.engine_args, *words)),
        text=lambda words: shlex.join(words) or "none",
    ),
}


def _checked(vary: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return a suite's factor with its levels in their types; raises ValueError.

    One without levels is none, so that an overlay can take a factor away.
    """
    vary = {name: levels for name, levels in vary.items() if levels}
    if len(vary) > 1:
        raise ValueError(f"a suite varies one thing, not {' and '.join(vary)}")
    for name, levels in vary.items():
        if (factor := FACTORS.get(name)) is None:
            raise ValueError(f"unknown factor {name!r}; {nearest(name, FACTORS)}")
        try:
            vary = {name: TypeAdapter(list[factor.kind]).validate_python(levels)}  # type: ignore[name-defined]
        except ValidationError as error:
            raise ValueError(f"{name}.{first_fault(error)}") from error
        texts = [*map(factor.text, vary[name])]
        if len(set(texts)) < len(texts):
            raise ValueError(f"{name}: a level is named twice")
    return vary


Vary = Annotated[
    dict[str, list[Any]],
    AfterValidator(_checked),
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": {
                name: TypeAdapter(list[factor.kind]).json_schema()  # type: ignore[name-defined]
                for name, factor in FACTORS.items()
            },
        }
    ),
]


def at_levels(block: Block, vary: dict[str, list[Any]]) -> list[Block]:
    """Return what a suite's block becomes: one with all levels, or one for each of them."""
    if not vary:
        return [block]
    [(name, levels)] = vary.items()
    factor = FACTORS[name]
    block = replace(block, factor=name)
    changed = [(factor.text(level), factor.change(block, level)) for level in levels]
    if not factor.shares_block:
        return [replace(one, level=text) for text, one in changed]
    sides = _merged(block.sides, [(text, one.sides) for text, one in changed])
    prompts = _merged(block.prompts, [(text, one.prompts) for text, one in changed])
    return [replace(block, sides=sides, prompts=prompts)]


def _merged(own: Sequence[T], changed: list[tuple[str, Sequence[T]]]) -> tuple[T, ...]:
    """Return sides or prompts at all levels, each with the level that made it so."""
    at_level = (
        [one if one in own else replace(one, level=text) for one in its] for text, its in changed
    )
    return tuple(dict.fromkeys(chain.from_iterable(zip(*at_level, strict=True))))


def level_id(text: str) -> str:
    """Return the text of a level as a part of ids and of files' names.

    One that is too long for that, or has other characters, is named by a digest.
    """
    word = text.replace(" ", "+")
    if len(word) <= _LONGEST_ID and _SAFE.fullmatch(word):
        return word
    return f"level-{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"
