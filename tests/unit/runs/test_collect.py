"""A block's record becomes rows: the right counters, nulls where nothing was measured."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.errors import DamagedFileError, MeasurementError
from specmoe.measure.common_prefix import common_prefix
from specmoe.runs.collect import (
    collect_records,
    link_baselines,
    rows_of_record,
)
from specmoe.runs.schema import COLUMNS

from ...made_record import made_record, small_blocks, small_config


@pytest.fixture(scope="module")
def block(_study):
    return small_blocks(small_config(deepcopy(_study)))["S/target/draft/r0"]


@pytest.fixture
def made(block):
    """The record of a block: the target alone and γ = 4, with a text and a passage."""
    return made_record(block)


def runs_of(made, side="g4", prompt="code"):
    return [run for run in made["runs"] if (run["side"], run["prompt"]) == (side, prompt)]


def row_of(made, side="g4", prompt="code"):
    [run] = runs_of(made, side, prompt)
    return next(row for row in rows_of_record(made, "tiny") if row["run"] == run["run"])


def test_a_row_has_exactly_the_columns_of_the_schema(made):
    assert [set(row) for row in rows_of_record(made, "tiny")] == [set(COLUMNS)] * 4


def test_a_row_has_what_happened_to_its_run_and_to_its_process(made):
    seen = {"measured_again": 2, "taken_away": "why", "steal_share": 0.25, "gpu_throttled": True}
    runs_of(made)[0].update(seen)
    made["sides"][1] |= {"start_ms": 900.0, "warm_up_ms": 30.0}
    row = row_of(made)
    assert {name: row[name] for name in seen} == seen
    assert (row["start_ms"], row["warm_up_ms"]) == (900.0, 30.0)
    assert (row["arrangement"], row["pass"]) == ("together", 0)


def test_a_run_of_the_target_alone_has_no_draft_and_nulls_rather_than_zeros(made):
    row = row_of(made, "alone")
    assert (row["draft"], row["method"], row["gamma"]) == ("none", "none", 0)
    nulls = ["rounds", "drafted", "accepted", "accepted_per_position", "replays", "draft_ms"]
    assert [row[column] for column in ("draft_sha256", *nulls)] == [None] * 7


def test_a_row_has_the_counters_of_its_own_run_and_the_facts_of_its_side(made):
    runs_of(made)[0]["verifications"] = [[1, 2, True], [1, 2, True], [2, 2, False]]
    made["sides"][1]["peak_rss_bytes"] = 13
    row = row_of(made)
    # The rate leaves out the first token, which the prompt gives.
    assert (row["generated"], row["tokens_per_second"]) == (16, pytest.approx(15 / 0.0138))
    assert (row["draft"], row["gamma"], row["draft_ms"]) == ("draft", 4, 4.5)
    assert [row[name] for name in ("rounds", "drafted", "accepted", "decodes")] == [9, 17, 6, 10]
    assert row["accepted_per_position"] == [3, 2, 1, 0]
    assert (row["replays"], row["replays_rejected"], row["peak_rss_bytes"]) == (2, 1, 13)


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ({}, "target", ""),  # as in records of earlier releases
        (
            {"engine_args": ["--poll", "0", "--no-repack"], "options_id": "--no-repack"},
            "target+--no-repack",
            "--poll 0 --no-repack",
        ),
    ],
)
def test_a_row_has_the_options_of_its_block_and_a_target_of_its_own(made, options, name, text):
    for key in ("engine_args", "options_id"):
        del made["block"][key]
    made["block"] |= options
    row = row_of(made)
    assert (row["target"], row["target_model"], row["engine_options"]) == (name, "target", text)


@pytest.fixture
def pair(made):
    """The rows of the target alone and of its draft, not linked."""
    unlinked = {"baseline": None, "common_prefix": None}
    return [row_of(made, side) | unlinked for side in ("alone", "g4")]


def test_the_baseline_of_a_row_is_of_its_block_prompt_and_pass(pair):
    alone, drafted = pair
    rows = [
        drafted | {"pass": 1, "tokens": [0, 1, 9]},
        alone,
        alone | {"pass": 1, "prompt": "q"},
        alone | {"pass": 1, "run": "its own"},
    ]
    link_baselines(rows)
    assert [row["baseline"] for row in rows] == ["its own", None, None, None]
    assert rows[0]["common_prefix"] == 2


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (1, {"imposed_acceptance": 0.5}),
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


def test_a_row_of_another_block_or_one_without_the_target_alone_has_no_baseline(pair):
    alone, drafted = pair
    for rows in ([alone, drafted | {"block": "S/target/draft/r1"}], [drafted]):
        link_baselines(rows)
        assert rows[-1]["baseline"] is rows[-1]["common_prefix"] is None


@given(shared=st.lists(st.integers()), one=st.lists(st.integers()), other=st.lists(st.integers()))
def test_the_common_prefix_ends_at_the_first_difference(shared, one, other):
    length = common_prefix(first := shared + one, second := shared + other)
    assert length >= len(shared)
    assert first[:length] == second[:length]
    assert first[length : length + 1] != second[length : length + 1] or first == second


@pytest.fixture
def collect(made, block, tmp_path):
    """Collect a record after a change."""

    def changed(change):
        change(made)
        (tmp_path / "r0.json").write_text(json.dumps(made))
        return collect_records({tmp_path / "r0.json": block}, "tiny")

    return changed


def endless(key):
    """Return a change that makes drafts of a record as long as no memory holds."""
    return lambda record: record["sides"][1].update({key: 2**31})


@pytest.mark.parametrize(
    ("break_it", "fault"),
    [
        (lambda record: record["block"].update(suite=[]), ""),
        (endless("gamma"), "drafts of 2147483648 tokens"),
        (lambda record: record["runs"][0]["metrics"].update(n_decode_total=1.5), "n_decode_total"),
        (lambda record: record["runs"][0].update(started_at="2026-11-25T10:00:00"), "has no zone"),
    ],
)
def test_a_broken_record_is_named(collect, break_it, fault):
    with pytest.raises(DamagedFileError, match=rf"r0\.json is damaged.*{fault}"):
        collect(break_it)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: record["block"].update(seed=1), "seed: 1 before, 42 now"),
        (
            lambda record: record["sides"][1]["environment"].update(GGML_X="1"),
            "side g4: environment is .*GGML_X",
        ),
        (
            lambda record: record["runs"][0]["answer"]["timings"].update(prompt_n=1),
            "run S/.*: tokens_evaluated is 32, not 1",
        ),
        (lambda record: record["runs"][0].update(order=7), "order of its runs is "),
    ],
)
def test_a_record_of_another_configuration_is_named_with_what_differs(collect, change, said):
    fault = rf"r0\.json was measured with another configuration \({said}.*; delete it and run "
    with pytest.raises(MeasurementError, match=fault):
        collect(change)


def test_many_records_of_another_configuration_are_counted(study, tmp_path):
    files = {}
    for block in small_blocks(small_config(study)).values():
        file = tmp_path / f"{block.suite}.json"
        file.write_text(json.dumps(made_record(replace(block, seed=1))))
        files[file] = block
    with pytest.raises(MeasurementError, match=r"seed: 1 .*, and so was 1 more; delete them and"):
        collect_records(files, "tiny")


def test_the_same_runs_in_two_records_are_refused(made, block, tmp_path):
    files = {tmp_path / "one.json": block, tmp_path / "two.json": block}
    for file in files:
        file.write_text(json.dumps(made))
    with pytest.raises(MeasurementError, match=r"one\.json and .*two\.json hold the same runs"):
        collect_records(files, "tiny")
