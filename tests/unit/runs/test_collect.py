"""A block's record becomes rows: the right counters, nulls where nothing was measured."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.errors import MeasurementError
from specmoe.measure.trace import common_prefix
from specmoe.records import UNKNOWN, Records
from specmoe.runs.collect import link_baselines, measured_as_asked, rows_of_record

from ...blocks import MADE_BY
from ...made_record import made_record, small_block


@pytest.fixture(scope="module")
def block(_study):
    return small_block(deepcopy(_study))


@pytest.fixture
def made(block):
    """The record of a block: the baseline and γ = 4, with a text and a passage."""
    return made_record(block)


def of_text(runs, arm="draft/g4"):
    """Return the one of some runs or rows that is of an arm and the text."""
    [found] = (run for run in runs if f"/{arm}/code/" in run["run"])
    return found


@pytest.fixture
def row_of(made, block):
    """Give the row of an arm and the text."""
    return lambda *arm: of_text(rows_of_record(made, block, MADE_BY), *arm)


def test_a_row_has_what_happened_to_its_run_and_to_its_process(made, row_of):
    seen = {"reruns": 2, "disturbed_reason": "why", "steal_share": 0.25, "gpu_throttled": True}
    of_text(made["runs"]).update(seen)
    row = row_of()
    assert {name: row[name] for name in seen} == seen
    assert (row["schedule"], row["iteration"]) == ("interleaved", 0)
    alone = row_of("baseline")
    assert (alone["draft"], alone["method"], alone["gamma"]) == ("none", "none", 0)
    nulls = ["draft_sha256", "rounds", "drafted", "accepted", "accepted_per_position", "draft_ms"]
    assert [alone[column] for column in nulls] == [None] * 6


def test_a_row_has_the_counters_of_its_own_run_and_the_facts_of_its_arm(made, row_of):
    of_text(made["runs"])["verifications"] = [[1, 2, True], [1, 2, True], [2, 2, False]]
    made["arms"][1]["peak_rss_bytes"] = 13
    row = row_of()
    # The rate leaves out the first token, which the prompt gives.
    assert (row["generated"], row["tokens_per_second"]) == (16, pytest.approx(15 / 0.0138))
    assert (row["draft"], row["gamma"], row["draft_ms"]) == ("draft", 4, 4.5)
    assert [row[name] for name in ("rounds", "drafted", "accepted", "decodes")] == [9, 17, 6, 10]
    assert row["accepted_per_position"] == [3, 2, 1, 0]
    assert (row["replays"], row["replays_rejected"], row["peak_rss_bytes"]) == (2, 1, 13)


def test_who_a_row_is_comes_from_the_block_that_is_asked_for(made, block):
    made["runs"][0] |= {"suite": "X", "target": "other", "gamma": 8, "seed": 1, "engine": "other"}
    made["arms"][0] |= {"gamma": 8, "draft": "other"}
    asked = rows_of_record(made_record(block), block, MADE_BY)
    assert rows_of_record(made, block, MADE_BY) == asked
    assert {row["engine"] for row in asked} == {MADE_BY["engine"]}
    assert {row["draft_sha256"] for row in asked} == {None, "b" * 64}


@pytest.fixture
def pair(row_of):
    """The rows of the baseline and of its draft, not linked."""
    unlinked = {"baseline": None, "common_prefix": None}
    return [row_of(arm) | unlinked for arm in ("baseline", "draft/g4")]


def test_the_baseline_of_a_row_is_of_its_block_and_prompt(pair):
    alone, drafted = pair
    own = alone | {"prompt": "q", "run": "its own"}
    rows = [drafted | {"prompt": "q", "tokens": [0, 1, 9]}, own, alone]
    rows.append(own | {"block": "another", "run": "not its own"})
    link_baselines(rows)
    assert [row["baseline"] for row in rows] == ["its own", None, None, None]
    assert rows[0]["common_prefix"] == 2


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (1, {"forced_acceptance": 0.5}),
        (1, {"tokens": None}),
        (0, {"tokens": None}),
        (1, {"temperature": 0.7}),
    ],
)
def test_texts_that_need_not_be_equal_are_linked_without_a_prefix(pair, place, change):
    pair[place] |= change
    link_baselines(pair)
    assert pair[1]["baseline"] == pair[0]["run"]
    assert pair[1]["common_prefix"] is None


@given(shared=st.lists(st.integers()), one=st.lists(st.integers()), other=st.lists(st.integers()))
def test_the_common_prefix_ends_at_the_first_difference(shared, one, other):
    length = common_prefix(first := shared + one, second := shared + other)
    assert length >= len(shared)
    assert first[:length] == second[:length]
    assert first[length : length + 1] != second[length : length + 1] or first == second


@pytest.mark.parametrize(
    ("break_it", "fault"),
    [
        (lambda record: record["runs"].pop(), "S/target/r0/"),
        (
            lambda record: record["runs"].append(record["runs"][0] | {"run": "S/more"}),
            "it has runs that are not of its block, as S/more",
        ),
    ],
)
def test_a_record_without_its_blocks_runs_is_refused(made, block, break_it, fault):
    break_it(made)
    with pytest.raises((KeyError, ValueError), match=fault):
        rows_of_record(made, block, MADE_BY)


def test_a_record_says_what_it_was_asked_where_that_is_not_known_any_more(tmp_path):
    records, request = Records(tmp_path), {"target_sha256": "a" * 64}
    records.measured_once("blocks/a", request, dict)
    records.relink("blocks/a", request)
    found, _ = measured_as_asked(records, "blocks/a", {"target_sha256": UNKNOWN})
    assert found == request
    with pytest.raises(MeasurementError, match=r"configuration \(target_sha256: aaaa"):
        measured_as_asked(records, "blocks/a", {"target_sha256": "b" * 64})
