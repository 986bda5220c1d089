"""Progress names what is missing and where to look, and says how long the rest may take."""

import json
import os
from pathlib import Path

import pytest

from specmoe.errors import DamagedFileError
from specmoe.plan.inventory import changed_blocks
from specmoe.plan.progress import (
    MeasuredBlock,
    describe_missing,
    describe_progress,
    seconds_left,
)

from ...blocks import alone

BLOCKS = ["A/t/none/r0", "B/t/d/r0", "B/t/e/r0"]


def test_failed_blocks_are_named_with_their_log_and_others_counted(tmp_path):
    measured, failed, _ = BLOCKS
    for file in f"blocks/{measured}.json", f"logs/{measured}.log", f"logs/{failed}.log":
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    text = describe_missing(BLOCKS, tmp_path / "blocks", tmp_path / "logs")
    assert text.startswith("2 of 3 blocks are not measured")
    assert "failed or interrupted 1, not started 1." in text
    assert f"{failed}: see {tmp_path}/logs/{failed}.log" in text
    assert describe_missing([measured], tmp_path / "blocks", tmp_path / "logs") == ""


@pytest.mark.parametrize(
    ("estimated", "measured", "left"),
    [
        ({"a": 10.0, "b": 20.0, "c": 30.0}, {}, 60),
        ({"a": 10.0, "b": 20.0, "c": 30.0}, {"a": 30.0}, 150),
        ({"a": 10.0, "b": 20.0, "c": 30.0}, {"a": 30.0, "b": 0.0, "c": 5.0}, 0),
        # A block without an estimate counts as the mean of the measured ones.
        ({"a": None, "b": None}, {}, None),
        ({"a": None, "b": None, "c": None}, {"a": 7.0}, 14),
    ],
)
def test_the_pace_of_measured_blocks_scales_the_estimate(estimated, measured, left):
    assert seconds_left(estimated, measured) == left


@pytest.fixture
def told(tmp_path):
    """What is said of a plan, with records of blocks that were written so long after it, in s."""

    def say(estimated, records, **more):
        plan = tmp_path / "plan.json"
        plan.write_text(
            json.dumps({"estimated_s": estimated, "measured_s": {}, "again": []} | more)
        )
        for block, later in records.items():
            (tmp_path / f"{block}.json").touch()
            os.utime(tmp_path / f"{block}.json", (plan.stat().st_mtime + later,) * 2)
        return describe_progress(plan, tmp_path)

    return say


def test_progress_counts_blocks_and_says_how_long_the_rest_takes(told, tmp_path):
    assert describe_progress(tmp_path / "plan.json", tmp_path) == "measured"
    times = {"a": 10.0, "b": 60.0, "c": 60.0}
    assert told(times, {"a": 5}) == "1 of 3 blocks, 2 min left"
    # At the pace of those that the plan knows.
    assert told(times, {}, measured_s={"a": 20.0}) == "1 of 3 blocks, 4 min left"
    assert told(times, {"b": 5, "c": 5}) == "3 of 3 blocks"


def test_a_block_to_measure_again_counts_when_its_record_is_newer_than_the_plan(told):
    assert told({"a": 10.0}, {"a": -5}, again=["a"]) == "0 of 1 block, 10 s left"
    assert told({"a": 10.0}, {"a": 5}, again=["a"]) == "1 of 1 block"


def test_a_damaged_record_is_named():
    with pytest.raises(DamagedFileError, match=r"r0\.json is damaged"):
        changed_blocks([alone()], {alone().block: MeasuredBlock(Path("r0.json"), {}, 5.0)})
