"""Progress names what is missing and where to look, and says how long the rest may take."""

import json

import pytest

from specmoe.plan.progress import (
    describe_missing,
    describe_progress,
    seconds_left,
)

BLOCKS = ["A/t/none/r0", "B/t/d/r0", "B/t/e/r0"]


def test_failed_blocks_are_named_with_their_log_and_others_counted(tmp_path):
    measured, failed, _ = BLOCKS
    for file in f"blocks/{measured}.jsonl", f"logs/{measured}.log", f"logs/{failed}.log":
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


def test_progress_counts_blocks_and_says_how_long_the_rest_takes(tmp_path):
    def told(records, measured_s):
        plan = {"estimated_s": {"a": 10.0, "b": 60.0, "c": 60.0}, "measured_s": measured_s}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        for block in records:
            (tmp_path / f"{block}.jsonl").touch()
        return describe_progress(tmp_path / "plan.json", tmp_path)

    assert describe_progress(tmp_path / "plan.json", tmp_path) == "measured"
    assert told("a", {}) == "1 of 3 blocks, 2 min left"
    # At the pace of those that the plan knows.
    assert told("a", {"a": 20.0}) == "1 of 3 blocks, 4 min left"
    assert told("abc", {}) == "3 of 3 blocks"
