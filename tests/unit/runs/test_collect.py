"""A block's record becomes rows: the right counters, nulls where nothing was measured."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.errors import DamagedFileError, MeasurementError
from specmoe.files import sha256_of
from specmoe.measure.common_prefix import common_prefix
from specmoe.runs.collect import (
    collect_records,
    ends_of_record,
    link_baselines,
    mark_past_end,
    rows_of_both,
    rows_of_record,
)
from specmoe.runs.schema import COLUMNS

from ...made_record import made_record, small_blocks, small_config

TOKENS = [5, 6, 7, 8]
COUNTERS = {
    "spec_decode_num_drafts_total": 1.0,
    "spec_decode_num_draft_tokens_total": 2.0,
    "spec_decode_num_accepted_tokens_total": 2.0,
    "spec_decode_num_accepted_tokens_per_pos_total/0": 1.0,
    "spec_decode_num_accepted_tokens_per_pos_total/1": 1.0,
}
BLOCK = "B/t/d/r0"


def side_of(gamma, **more):
    name = f"g{gamma}" if gamma else "alone"
    known = {"side": name, "setting": "d", "gamma": gamma, "ngram_gamma": None}
    return known | {"imposed_acceptance": None, "peak_rss_bytes": 10 + gamma} | more


def run_of(gamma, number=0, prompt="p", tokens=TOKENS):
    name = f"g{gamma}" if gamma else "alone"
    speculative = {
        "draft_ms": 12.5,
        "by_type": [{"type": "draft-simple", "drafts": 1, "drafted": 2, "accepted": 3}],
        "verifications": [[1, 2, True], [1, 2, True], [2, 2, False]],
    }
    return {
        "run": f"{BLOCK}/{name}/{prompt}/p{number}",
        "side": name,
        "prompt": prompt,
        "pass": number,
        "order": 0,
        "seed": 1,
        "started_at": "2026-11-01T00:00:00+00:00",
        "load_average": 0.5,
        "decode_failures": 0,
        "metrics": {"n_decode_total": 2.0, **COUNTERS} if gamma else {"n_decode_total": 4.0},
        "answer": {
            "tokens": tokens,
            "timings": {"prompt_n": 3, "prompt_ms": 1.0, "predicted_ms": 30.0},
        },
    } | (speculative if gamma else {})


def record(*runs, gammas=(0, 3), **block):
    """Return the record of a block; by default, the target alone and γ = 3 have a run each."""
    return {
        "protocol": "paired",
        "host": "abc",
        "arrangement": "together",
        "block": {
            "block": BLOCK,
            "suite": "B",
            "target": "t",
            "methods": ["draft"],
            "draft": "d",
            "draft_model": "d",
            "repeat": 0,
            "n_predict": 4,
            "temperature": 0.0,
            "seed": 1,
        }
        | block,
        "sides": [side_of(gamma) for gamma in gammas],
        "provenance": {
            "engine": "e-cpu",
            "engine_commit": "0c1e570",
            "backend": "cpu",
            "target_sha256": "a",
            "draft_sha256": "b",
        },
        "runs": runs or [run_of(gamma) for gamma in gammas],
    }


def rows(*runs, **more):
    return rows_of_record(record(*runs, **more), "c")


def test_a_row_has_exactly_the_columns_of_the_schema():
    assert [set(row) for row in rows()] == [set(COLUMNS)] * 2


def test_a_row_has_what_happened_to_its_run_and_to_its_process():
    first, second = rows(run_of(3), run_of(3, number=1))
    assert (first["arrangement"], first["pass"], second["pass"]) == ("together", 0, 1)
    seen = {"measured_again": 2, "taken_away": "why", "steal_share": 0.25, "gpu_throttled": None}
    made = record(run_of(3) | seen, gammas=(3,))
    made["sides"][0] |= {"start_ms": 900.0, "warm_up_ms": 30.0}
    [row] = rows_of_record(made, "c")
    assert {name: row[name] for name in seen} == seen
    assert (row["start_ms"], row["warm_up_ms"]) == (900.0, 30.0)


def test_a_comparison_that_was_disturbed_has_the_rows_of_its_second_measurement():
    first = record(
        *(run_of(gamma) | {"measured_again": 2, "taken_away": gamma and "why"} for gamma in (0, 3)),
        *(run_of(gamma, prompt="q") | {"measured_again": 0} for gamma in (0, 3)),
    )
    first["runs"][0]["taken_away"] = None
    again = record(*(run_of(gamma) | {"measured_again": 1} for gamma in (0, 3)))
    again["host"] = "other"
    found = {(row["prompt"], row["gamma"]): row for row in rows_of_both(first, again, "c")}
    assert {key: row["host"] for key, row in found.items()} == {
        **{("p", gamma): "other" for gamma in (0, 3)},
        **{("q", gamma): "abc" for gamma in (0, 3)},
    }
    # Three attempts and two: the last came after four others.
    assert [found["p", 3][name] for name in ("measured_again", "taken_away")] == [4, None]
    assert found["q", 3]["measured_again"] == 0
    assert found["p", 3]["baseline"] == f"{BLOCK}/alone/p/p0"


def test_a_run_of_the_target_alone_has_no_draft_and_nulls_rather_than_zeros():
    [alone, _] = rows()
    assert (alone["draft"], alone["method"], alone["gamma"]) == ("none", "none", 0)
    assert alone["draft_sha256"] is None
    counters = ["rounds", "drafted", "accepted", "accepted_per_position", "replays", "draft_ms"]
    assert [alone[column] for column in counters] == [None] * len(counters)


def test_a_row_has_the_counters_of_its_own_run_and_the_facts_of_its_side():
    [alone, speculative] = rows()
    # The rate leaves out the first token, which the prompt gives.
    assert (alone["generated"], alone["tokens_per_second"]) == (4, pytest.approx(3 / 0.030))
    assert (speculative["draft"], speculative["gamma"]) == ("d", 3)
    assert speculative["rounds"] == 1
    assert speculative["drafted"] == speculative["accepted"] == speculative["decodes"] == 2
    assert speculative["accepted_per_position"] == [1, 1, 0]
    assert speculative["replays"] == 2
    assert speculative["replays_rejected"] == 1
    assert speculative["draft_ms"] == 12.5
    assert [row["peak_rss_bytes"] for row in rows()] == [10, 13]


def test_the_baseline_of_a_row_is_of_its_block_prompt_and_pass():
    found = rows(
        run_of(3, 1, tokens=[5, 6, 9, 9]),
        run_of(0, 0, tokens=[1, 1, 1, 1]),
        run_of(0, 1, prompt="q", tokens=[1, 1, 1, 1]),
        run_of(0, 1),
    )
    assert found[0]["baseline"] == f"{BLOCK}/alone/p/p1"
    assert found[0]["common_prefix"] == 2
    assert [row["baseline"] for row in found[1:]] == [None] * 3


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ({}, "t", ""),  # as in records of earlier releases
        (
            {
                "engine_options": {"poll": 0, "n-cpu-moe": 2},
                "extra_args": ["--no-repack"],
                "options_id": "n-cpu-moe=2",
            },
            "t+n-cpu-moe=2",
            "n-cpu-moe=2 poll=0 -- --no-repack",
        ),
    ],
)
def test_a_row_has_the_options_of_its_block_and_a_target_of_its_own(options, name, text):
    [row] = rows(run_of(0), **options)
    assert (row["target"], row["target_model"], row["engine_options"]) == (name, "t", text)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (1, {"imposed_acceptance": 0.5}),
        (1, {"tokens": None}),
        (0, {"tokens": None}),
        (1, {"temperature": 0.7}),
    ],
)
def test_texts_that_need_not_be_equal_are_linked_without_a_prefix(place, change):
    found = rows()
    for row in found:
        row |= {"baseline": None, "common_prefix": None}
    found[place] |= change
    link_baselines(found)
    assert found[1]["baseline"] == found[0]["run"]
    assert found[1]["common_prefix"] is None


def test_a_row_of_another_block_or_one_without_the_target_alone_has_no_baseline():
    [alone, speculative] = rows()
    other = speculative | {"block": "B/t/d/r1", "baseline": None, "common_prefix": None}
    link_baselines([alone, other])
    for row in (other, *rows(gammas=(3,))):
        assert row["baseline"] is row["common_prefix"] is None


@given(shared=st.lists(st.integers()), one=st.lists(st.integers()), other=st.lists(st.integers()))
def test_the_common_prefix_ends_at_the_first_difference(shared, one, other):
    length = common_prefix(first := shared + one, second := shared + other)
    assert length >= len(shared)
    assert first[:length] == second[:length]
    assert first[length : length + 1] != second[length : length + 1] or first == second


@pytest.fixture
def collect(study, tmp_path):
    """Collect the record of a small block after a change."""
    block = small_blocks(small_config(study))["S/target/draft/r0"]

    def changed(change):
        made = made_record(block)
        change(made)
        (tmp_path / "r0.json").write_text(json.dumps(made))
        return collect_records({tmp_path / "r0.json": block}, "tiny", {})

    return changed


def endless(key):
    """Return a change that makes drafts of a record as long as no memory holds."""
    return lambda record: record["sides"][1].update({key: 2**31})


@pytest.mark.parametrize(
    ("break_it", "fault"),
    [
        (lambda record: record["block"].update(suite=[]), ""),
        (lambda record: record["block"].update(target=[]), ""),
        (endless("gamma"), "drafts of 2147483648 tokens"),
        (endless("ngram_gamma"), "drafts of 2147483648 tokens"),
        (lambda record: record["runs"][0]["metrics"].update(n_decode_total=1.5), "n_decode_total"),
        (lambda record: record["runs"][0]["answer"].update(tokens=[None]), "tokens"),
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
        (lambda record: record["block"].update(context=9), "context: 9 before, 512 now"),
        (lambda record: record["block"].update(threads=9), "threads: 9 before, 1 now"),
        (
            lambda record: record["block"].update(environment={"OMP_PLACES": "cores"}),
            "environment: {'OMP_PLACES': 'cores'} before, {} now",
        ),
        (
            lambda record: record["sides"][1]["environment"].update(GGML_X="1"),
            "side g4: environment is .*GGML_X",
        ),
        (
            lambda record: record["runs"][0]["answer"]["timings"].update(prompt_n=1),
            "run S/.*: tokens_evaluated is 32, not 1",
        ),
        (lambda record: record["runs"][0].update(order=7), "order of its runs is "),
        (lambda record: record.pop("ends"), "prompts with the target's end is "),
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
        collect_records(files, "tiny", {})


@pytest.mark.parametrize("keep", [1, 2])
def test_a_second_record_is_of_its_first_and_of_the_prompts_to_measure_again(study, tmp_path, keep):
    block = small_blocks(small_config(study))["S/target/draft/r0"]
    first = made_record(block)
    first["runs"][0]["taken_away"] = "a thread waited"
    [disturbed] = [one for one in block.prompts if one.prompt == first["runs"][0]["prompt"]]
    prompts = [disturbed, *(one for one in block.prompts if one != disturbed)][:keep]
    file, second = tmp_path / "r0.json", tmp_path / "again.json"
    file.write_text(json.dumps(first))
    again = made_record(replace(block, prompts=tuple(prompts)))
    second.write_text(json.dumps(again | {"first": sha256_of(file)}))
    if keep == 1:
        assert len(collect_records({file: block}, "tiny", {file: second})[0]) == 4
        second.write_text(json.dumps(again | {"first": "0" * 64}))
    with pytest.raises(MeasurementError, match=r"again\.json was measured with another"):
        collect_records({file: block}, "tiny", {file: second})


def test_a_second_record_that_is_damaged_is_named(study, tmp_path):
    block = small_blocks(small_config(study))["S/target/draft/r0"]
    file, second = tmp_path / "r0.json", tmp_path / "again.json"
    file.write_text(json.dumps(made_record(block)))
    second.write_text("{}")
    with pytest.raises(DamagedFileError, match=r"again\.json is damaged"):
        collect_records({file: block}, "tiny", {file: second})


@pytest.mark.parametrize(("stopped_by", "past"), [("eos", 2), ("length", 1)])
def test_tokens_past_the_end_of_the_targets_own_text_are_counted(stopped_by, past):
    # The token that ends the text is none of it.
    made = record(run_of(0, tokens=[5, 6, 2, 8]), run_of(3, tokens=[5, 9, 9, 9]))
    made["ends"] = {"p": {"tokens": [5, 6, 2], "stopped_by": stopped_by}}
    found = rows_of_record(made, "c")
    mark_past_end(found, ends_of_record(made))
    assert [row["past_end"] for row in found] == [past, None]


def test_the_same_runs_in_two_records_are_refused(study, tmp_path):
    block = small_blocks(small_config(study))["S/target/draft/r0"]
    files = {tmp_path / "one.json": block, tmp_path / "two.json": block}
    for file in files:
        file.write_text(json.dumps(made_record(block)))
    with pytest.raises(MeasurementError, match=r"one\.json and .*two\.json hold the same runs"):
        collect_records(files, "tiny", {})
