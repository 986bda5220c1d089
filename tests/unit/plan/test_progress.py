"""Progress names what is missing and where to look, and says how long the rest may take."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from specmoe.errors import DamagedFileError
from specmoe.plan import progress
from specmoe.plan.inventory import changed_blocks
from specmoe.plan.progress import (
    PACE,
    Interrupted,
    MeasuredBlock,
    describe_missing,
    describe_progress,
    read_interrupted,
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


def test_what_an_unfinished_block_had_measured_is_lost_and_named(tmp_path):
    begun, finished, failed_at_once = BLOCKS
    records, logs = tmp_path / "blocks", tmp_path / "logs"
    runs = [f"run {i} of 12: {begun}/g4/code/p0: {i}.50 s, 8.1 tok/s\n" for i in (1, 2)]
    text = {begun: "".join(runs) + "run 3", finished: "".join(runs), failed_at_once: "no memory"}
    for block, lines in text.items():
        (logs / f"{block}.log").parent.mkdir(parents=True, exist_ok=True)
        (logs / f"{block}.log").write_text(lines)
    (records / f"{finished}.json").parent.mkdir(parents=True)
    (records / f"{finished}.json").touch()
    assert read_interrupted(BLOCKS, records, logs) == {begun: Interrupted(2, 12, 4.0)}
    printed = describe_missing(BLOCKS, records, logs)
    log = f"{begun}: see {logs / begun}.log"
    assert f"{log}; 2 of 12 runs, 4 s of measuring are lost" in printed
    assert f"{failed_at_once}: see {logs / failed_at_once}.log\n" in printed


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


@pytest.fixture
def planned(tmp_path):
    """Write a plan; returns its file."""

    def write(estimated, *, measured=None, again=()):
        plan = tmp_path / "plan.json"
        facts = {"estimated_s": estimated, "measured_s": measured or {}, "again": list(again)}
        plan.write_text(json.dumps(facts))
        return plan

    return write


def test_progress_counts_blocks_and_says_how_long_the_rest_takes(records, planned):
    folder = records(alone(), seconds=20.0)
    plan = planned({alone().block: 10.0, "B/t/d/r0": 60.0, "B/t/e/r0": 60.0})
    assert describe_progress(plan, folder) == "1 of 3 blocks, 4 min left"
    # Records of blocks that the plan counts as measured are not read again.
    plan = planned({"a": 10.0, "b": 60.0}, measured={"a": 20.0})
    assert describe_progress(plan, folder) == "1 of 2 blocks, 2 min left"
    plan.unlink()
    assert describe_progress(plan, folder) == "measured"


def test_a_block_to_measure_again_counts_when_its_record_is_newer_than_the_plan(records, planned):
    folder = records(alone())
    plan = planned({alone().block: 10.0}, again=[alone().block])
    os.utime(folder / f"{alone().block}.json", (0, 0))
    assert describe_progress(plan, folder) == "0 of 1 block, 10 s left"
    later = plan.stat().st_mtime + 5
    os.utime(folder / f"{alone().block}.json", (later, later))
    assert describe_progress(plan, folder) == "1 of 1 block"


def test_a_block_reads_the_latest_records_alone_however_many_there_are(
    records, planned, monkeypatch
):
    read = []
    blocks = [replace(alone(), block=f"B/t/d/r{number}") for number in range(3 * PACE)]
    folder = records(*blocks, seconds=20.0)
    for number, block in enumerate(blocks):
        os.utime(folder / f"{block.block}.json", (number + 1, number + 1))
    plan = planned({block.block: 10.0 for block in blocks} | {"B/t/e/r0": 60.0})
    known = progress.read_record
    monkeypatch.setattr(progress, "read_record", lambda file: read.append(file) or known(file))
    said = f"{len(blocks)} of {len(blocks) + 1} blocks, 2 min left"
    assert describe_progress(plan, folder) == said
    assert read == [folder / f"{block.block}.json" for block in reversed(blocks[-PACE:])]


def test_a_damaged_record_is_named():
    with pytest.raises(DamagedFileError, match=r"r0\.json is damaged"):
        changed_blocks([alone()], {alone().block: MeasuredBlock(Path("r0.json"), {}, 5.0)})
