"""Which blocks are measured a second time, and which of two records gives a row."""

import json
from dataclasses import replace

import pytest

from specmoe.config.block import History, Side
from specmoe.measure.again import better_in_second, block_to_measure_again

from ...blocks import ALONE, compared

BLOCK = compared(passes=2, gate={"retries": 2})


def record(*taken_away, block=BLOCK):
    """Return the record of a block in which some runs (side, prompt, pass) were disturbed."""
    runs = [
        {
            "run": block.run_id(side, source.prompt, number),
            "prompt": source.prompt,
            "pass": number,
            "taken_away": "why" if (side.name, source.prompt, number) in taken_away else None,
        }
        for side in block.sides
        for source in block.prompts
        for number in range(block.passes)
    ]
    return {"block": json.loads(block.to_json()), "runs": runs}


def test_a_block_without_disturbed_runs_is_not_measured_again():
    assert block_to_measure_again(record()) is None


def test_the_prompts_of_disturbed_runs_are_measured_again_by_all_sides_in_all_passes():
    again = block_to_measure_again(record(("g4", "code", 1)))
    assert [source.prompt for source in again.prompts] == ["code"]
    assert replace(again, prompts=BLOCK.prompts) == BLOCK


def test_without_retries_nothing_is_measured_again():
    block = replace(BLOCK, gate={"retries": 0})
    assert block_to_measure_again(record(("g4", "code", 1), block=block)) is None


@pytest.mark.parametrize(
    "more",
    [
        {"concurrency": 2},
        {"sides": (ALONE, Side(4, history=History.EARLIER))},
        {"sides": (ALONE, Side(4, imposed_acceptance=0.5))},
    ],
)
def test_where_a_run_depends_on_the_others_the_whole_block_is_measured_again(more):
    block = replace(BLOCK, **more)
    [side] = block.sides[1:]
    assert block_to_measure_again(record((side.name, "code", 0), block=block)) == block


def test_a_record_of_the_published_protocol_has_no_disturbed_runs():
    bare = record()
    for run in bare["runs"]:
        del run["taken_away"]
    assert block_to_measure_again(bare) is None


def test_the_second_record_gives_the_comparisons_that_it_has_less_disturbed():
    first = record(("g4", "code", 0), ("alone", "code", 0), ("g4", "code", 1))
    second = record(("alone", "code", 0), ("g4", "code", 1), ("g4", "passage-32", 0))
    # Of code in pass 1 and of the passage the second one is no better.
    assert better_in_second(first, second) == {("code", 0)}


def test_a_load_is_compared_as_a_whole():
    loaded = replace(BLOCK, concurrency=2)
    first = record(("g4", "code", 0), ("g4", "passage-32", 0), block=loaded)
    assert better_in_second(first, record(block=loaded)) == {(None, 0)}
