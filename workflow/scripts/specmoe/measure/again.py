"""The blocks of records, and the second measurement of one that was disturbed at every attempt.

What the rule of `engine.taken_away` said of each run decides on it, never a speed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, History
from specmoe.config.gate import Gate
from specmoe.config.parse import parse
from specmoe.files import named_if_damaged, read_record

Record = Mapping[str, Any]
Neighbours = tuple[str | None, int]
"""Runs that are compared with one another: their prompt (None: all of a load) and their pass."""


def recorded_block(records: Path, name: str) -> Block:
    """Return the block that a record is of, from the folder of all records."""
    file = records / f"{name}.json"
    with named_if_damaged(file):
        return parse(Block, read_record(file)["block"])


def second_of(folder: Path, block: str) -> Path:
    """Return the file of a block's second record."""
    return folder / f"{block}.json"


def neighbours(record: Record, run: Mapping[str, Any]) -> Neighbours:
    """Return what a run of a record is compared with."""
    of_load = record["block"].get("concurrency") is not None
    return (None if of_load else run["prompt"], run["pass"])


def disturbed(record: Record) -> Counter[Neighbours]:
    """Return how many runs were disturbed at every attempt, among those compared."""
    return Counter(neighbours(record, run) for run in record["runs"] if run.get("taken_away"))


def better_in_second(first: Record, second: Record) -> frozenset[Neighbours]:
    """Return the comparisons that the second record gives: those with fewer disturbed runs."""
    before, after = disturbed(first), disturbed(second)
    there = {neighbours(second, run) for run in second["runs"]}
    return frozenset(one for one in before if one in there and after[one] < before[one])


def block_to_measure_again(record: Record) -> Block | None:
    """Return the block that a second measurement goes through; None if there is nothing to repeat.

    It has the prompts of the disturbed runs, with all sides and passes. All prompts are needed
    where a run depends on the others: under a load, with a method that remembers earlier prompts,
    and with imposed acceptance, whose draws come from a run's place in its block.
    """
    found = disturbed(record)
    if not found:
        return None
    block = parse(Block, record["block"])
    if not Gate.model_validate(block.gate).retries:
        return None
    imposed = any(side.imposed_acceptance is not None for side in block.sides)
    earlier = any(side.history == History.EARLIER for side in block.sides)
    if block.concurrency is not None or imposed or earlier:
        return block
    prompts = {prompt for prompt, _ in found}
    return replace(
        block, prompts=tuple(source for source in block.prompts if source.prompt in prompts)
    )
