"""A block's job asks a cluster for what the plan estimates, and for more when retried."""

import json

from specmoe.plan.asked import (
    LEAST_MINUTES,
    UNKNOWN_MINUTES,
    WHOLE_NODE_MB,
    asked_mb,
    asked_minutes,
    planned_blocks,
)


def test_time_and_memory_leave_room_and_grow_with_each_attempt():
    assert asked_minutes(3600, 1) == 240
    assert asked_minutes(3600, 2) == 480
    assert asked_minutes(2, 1) == LEAST_MINUTES
    assert [asked_mb(2**30, attempt) for attempt in (1, 2)] == [1536, 2304]


def test_without_a_plan_a_job_asks_for_hours_and_the_whole_node(tmp_path):
    (tmp_path / "plan.json").write_text("{")
    planned = planned_blocks(tmp_path / "plan.json")
    assert asked_minutes(planned["estimated_s"].get("B/x/r0"), 1) == UNKNOWN_MINUTES
    assert asked_mb(planned["memory_bytes"].get("B/x/r0"), 3) == WHOLE_NODE_MB


def test_the_plan_has_both_by_block(tmp_path):
    facts = {"estimated_s": {"B/x/r0": 60.0}, "memory_bytes": {"B/x/r0": None}, "shortfalls": []}
    (tmp_path / "plan.json").write_text(json.dumps(facts))
    assert planned_blocks(tmp_path / "plan.json") == {
        name: facts[name] for name in ("estimated_s", "memory_bytes")
    }
