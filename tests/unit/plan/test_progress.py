"""What is missing is said, and where to look; and how long the rest may take."""

import json
import os
from dataclasses import replace

import pytest

from specmoe.config.block import PromptSource
from specmoe.plan.progress import (
    changed_blocks,
    describe_missing,
    describe_progress,
    measured_seconds,
    seconds_left,
    seconds_of,
)

from ...blocks import baseline

BLOCKS = ["A/t/none/g0/r0", "B/t/d/g4/r0", "B/t/d/g8/r0"]


@pytest.fixture
def folders(tmp_path):
    def touch(folder, block, end):
        path = tmp_path / folder / f"{block}.{end}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    touch("blocks", BLOCKS[0], "json")
    touch("logs", BLOCKS[0], "log")
    touch("logs", BLOCKS[1], "log")
    return tmp_path / "blocks", tmp_path / "logs"


def test_failed_blocks_are_named_with_their_log_and_others_counted(folders):
    text = describe_missing(BLOCKS, *folders)
    assert text.startswith("2 of 3 blocks are not measured")
    assert "1 failed or were interrupted, 1 were not started" in text
    assert f"B/t/d/g4/r0: see {folders[1]}/B/t/d/g4/r0.log" in text


def test_a_complete_campaign_lacks_nothing(folders):
    assert describe_missing(BLOCKS[:1], *folders) == ""


def test_the_pace_of_measured_blocks_revises_the_estimate():
    estimated = {"a": 10.0, "b": 20.0, "c": 30.0}
    assert seconds_left(estimated, {}) == 60
    assert seconds_left(estimated, {"a": 30.0}) == 150
    assert seconds_left(estimated, {"a": 30.0, "b": 0.0, "c": 5.0}) == 0


def test_blocks_without_an_estimate_take_as_long_as_others():
    assert seconds_left({"a": None, "b": None}, {}) is None
    assert seconds_left({"a": None, "b": None, "c": None}, {"a": 7.0}) == 14


def test_the_time_of_a_block_is_its_own_word_or_that_of_its_parts():
    runs = [{"wall_ms": 500.0}, {"wall_ms": 1500.0}]
    assert seconds_of({"elapsed_s": 9.0, "runs": runs}) == 9
    assert seconds_of({"start_s": 1.0, "warm_up_s": 2.0, "runs": runs}) == 5
    assert seconds_of({"runs": runs}) == 2  # of protocol `published`


@pytest.fixture
def records(tmp_path):
    """Write records of blocks; returns their folder."""

    def write(*blocks, seconds=5.0):
        for block in blocks:
            file = tmp_path / "blocks" / f"{block.block}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            record = {"block": json.loads(block.to_json()), "elapsed_s": seconds, "runs": []}
            file.write_text(json.dumps(record))
        return tmp_path / "blocks"

    return write


def test_only_measured_blocks_have_a_time(records):
    folder = records(baseline())
    assert measured_seconds([baseline().block, "B/other/r0"], folder) == {baseline().block: 5.0}


def test_progress_counts_blocks_and_says_how_long_the_rest_takes(records, tmp_path):
    folder = records(baseline(), seconds=20.0)
    plan = tmp_path / "plan.json"
    estimated = {baseline().block: 10.0, "B/t/d/g4/r0": 60.0, "B/t/d/g8/r0": 60.0}
    plan.write_text(json.dumps({"estimated_s": estimated, "again": []}))
    assert describe_progress(plan, folder) == "1 of 3 blocks, 4 min left"


def test_a_block_that_is_measured_again_counts_once_it_is(records, tmp_path):
    folder, plan = records(baseline()), tmp_path / "plan.json"
    estimated = {baseline().block: 10.0}
    plan.write_text(json.dumps({"estimated_s": estimated, "again": [baseline().block]}))
    os.utime(folder / f"{baseline().block}.json", (0, 0))
    assert describe_progress(plan, folder) == "0 of 1 blocks, 10 s left"
    later = plan.stat().st_mtime + 5
    os.utime(folder / f"{baseline().block}.json", (later, later))
    assert describe_progress(plan, folder) == "1 of 1 blocks"


def test_an_added_prompt_is_why_a_block_is_measured_again(records):
    before = baseline()
    now = replace(before, prompts=(*before.prompts, PromptSource("mine", "mine.txt")))
    assert changed_blocks([before], records(before)) == {}
    assert changed_blocks([now], records(before)) == {now.block: "prompt added: mine"}
    assert changed_blocks([before], records(now)) == {now.block: "prompt left out: mine"}


def test_other_changes_are_told_with_both_values(records):
    now = replace(baseline(), n_predict=64)
    assert changed_blocks([now], records(baseline())) == {now.block: "n_predict: 32 before, 64 now"}


def test_a_key_that_an_older_release_did_not_have_is_no_change(records):
    folder = records(baseline())
    file = folder / f"{baseline().block}.json"
    record = json.loads(file.read_text())
    del record["block"]["environment"]
    file.write_text(json.dumps(record))
    assert changed_blocks([baseline()], folder) == {}
