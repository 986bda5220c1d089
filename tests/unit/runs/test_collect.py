"""A block's record becomes rows: the right counters, nulls where nothing was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.measure.common_prefix import common_prefix
from specmoe.runs.collect import link_baselines, rows_of_record
from specmoe.runs.schema import COLUMNS

TOKENS = [5, 6, 7, 8]


def record(draft="none", gamma=0, tokens=TOKENS, suite="B", repeat=0):
    speculative = draft != "none"
    block = f"{suite}/t/{draft}/g{gamma}/r{repeat}"
    counters = {
        "spec_decode_num_drafts_total": 1.0,
        "spec_decode_num_draft_tokens_total": 2.0,
        "spec_decode_num_accepted_tokens_total": 2.0,
        "spec_decode_num_accepted_tokens_per_pos_total/0": 1.0,
        "spec_decode_num_accepted_tokens_per_pos_total/1": 1.0,
    }
    from_log = {
        "draft_ms": 12.5,
        "verifications": [[1, 2, True], [1, 2, True], [2, 2, False]],
    }
    return {
        "protocol": "paired",
        "host": "abc",
        "peak_rss_bytes": 10,
        "block": {
            "block": block,
            "suite": suite,
            "target": "t",
            "method": "draft-simple" if speculative else "none",
            "draft": draft,
            "gamma": gamma,
            "repeat": repeat,
            "n_predict": 4,
            "temperature": 0.0,
            "imposed_acceptance": None,
            "seed": 1,
        },
        "provenance": {
            "engine": "e-cpu",
            "engine_commit": "0c1e570",
            "backend": "cpu",
            "target_sha256": "a",
            "draft_sha256": "b" if speculative else None,
        },
        "runs": [
            {
                "run": f"{block}/p",
                "prompt": "p",
                "order": 0,
                "started_at": "2026-11-01T00:00:00+00:00",
                "load_average": 0.5,
                "decode_failures": 0,
                "metrics": {"n_decode_total": 2.0 if speculative else 4.0}
                | (counters if speculative else {}),
                "answer": {
                    "tokens": tokens,
                    "timings": {"prompt_n": 3, "prompt_ms": 1.0, "predicted_ms": 30.0},
                },
            }
            | (from_log if speculative else {})
        ],
    }


def row(**kwargs):
    [only] = rows_of_record(record(**kwargs), "c")
    return only


def test_a_row_has_exactly_the_columns_of_the_schema():
    assert set(row()) == set(COLUMNS)


def test_the_rate_leaves_out_the_first_token_which_the_prompt_gives():
    assert row()["generated"] == 4
    assert row()["tokens_per_second"] == pytest.approx(3 / 0.030)


def test_a_baseline_has_no_speculation_counters_rather_than_zeros():
    baseline = row()
    counters = ["rounds", "drafted", "accepted", "accepted_per_position", "replays", "draft_ms"]
    assert [baseline[column] for column in counters] == [None] * len(counters)


def test_a_speculative_row_has_the_counters_of_its_own_run():
    speculative = row(draft="d", gamma=3)
    assert speculative["rounds"] == 1
    assert speculative["drafted"] == speculative["accepted"] == speculative["decodes"] == 2
    assert speculative["accepted_per_position"] == [1, 1, 0]
    assert speculative["replays"] == 2
    assert speculative["replays_rejected"] == 1
    assert speculative["draft_ms"] == 12.5


def test_a_counter_that_is_no_whole_number_is_refused():
    broken = record()
    broken["runs"][0]["metrics"]["n_decode_total"] = 1.5
    with pytest.raises(ValueError, match="n_decode_total"):
        rows_of_record(broken, "c")


def test_the_baseline_of_a_row_has_its_target_prompt_and_repeat():
    rows = [
        row(draft="d", gamma=2, tokens=[5, 6, 9, 9], repeat=1),
        row(suite="P", repeat=0, tokens=[1, 1, 1, 1]),
        row(suite="P", repeat=1),
    ]
    link_baselines(rows, {"B": "P"})
    assert rows[0]["baseline"] == "P/t/none/g0/r1/p"
    assert rows[0]["common_prefix"] == 2
    assert rows[2]["baseline"] is None


def test_runs_are_compared_at_their_own_temperature():
    rows = [row(draft="d", gamma=2), row(suite="P"), row(suite="P", repeat=0)]
    rows[0]["temperature"] = rows[1]["temperature"] = 0.7
    rows[1]["run"] = "warm"
    link_baselines(rows, {"B": "P"})
    assert rows[0]["baseline"] == "warm"
    assert rows[0]["common_prefix"] is None  # sampled texts differ


@pytest.mark.parametrize(
    ("place", "change"),
    [(0, {"imposed_acceptance": 0.5}), (0, {"tokens": None}), (1, {"tokens": None})],
)
def test_rows_of_imposed_acceptance_or_unknown_tokens_are_linked_without_a_prefix(place, change):
    rows = [row(draft="d", gamma=2), row(suite="P")]
    rows[place] |= change
    link_baselines(rows, {"B": "P"})
    assert rows[0]["baseline"] == rows[1]["run"]
    assert rows[0]["common_prefix"] is None


def test_a_row_without_baseline_stays_unlinked():
    rows = [row(draft="d", gamma=2)]
    link_baselines(rows, {"B": "P"})
    assert rows[0]["baseline"] is rows[0]["common_prefix"] is None


@given(shared=st.lists(st.integers()), rest=st.lists(st.integers()))
def test_a_list_shares_all_of_itself_with_its_extensions(shared, rest):
    assert common_prefix(shared, shared + rest) == len(shared)
    assert common_prefix(shared + rest, shared) == len(shared)


@given(shared=st.lists(st.integers()), one=st.integers(), other=st.integers())
def test_the_common_prefix_ends_at_the_first_difference(shared, one, other):
    expected = len(shared) + (one == other)
    assert common_prefix([*shared, one], [*shared, other]) == expected
