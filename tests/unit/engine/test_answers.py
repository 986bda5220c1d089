"""Broken answers of a server are no measurement."""

import json

import pytest

from specmoe.engine.answers import (
    COMPLETION,
    PROPERTIES,
    SLOTS,
    TOKENIZED,
    read_answer,
    read_counters,
    refuse_impossible_times,
)

TIMINGS = {"prompt_n": 3, "prompt_ms": 1.5, "predicted_ms": 20}
ANSWER = {"tokens": [1, 2], "timings": TIMINGS, "content": "ab"}


def read(answer, kind=COMPLETION):
    return read_answer(json.dumps(answer).encode(), kind)


def test_a_sound_answer_is_returned_whole():
    assert read(ANSWER) == ANSWER
    assert read([{"n_ctx": 512, "speculative": False, "id": 0}], SLOTS)[0]["n_ctx"] == 512
    assert read({}, PROPERTIES) == {}


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({}, "tokens: Field required"),
        (ANSWER | {"tokens": [-1]}, r"tokens\.0: "),
        (ANSWER | {"timings": TIMINGS | {"predicted_ms": 0}}, r"timings\.predicted_ms: .*greater"),
        (ANSWER | {"timings": TIMINGS | {"prompt_ms": "1"}}, r"timings\.prompt_ms: "),
        (ANSWER | {"timings": TIMINGS | {"predicted_ms": float("nan")}}, "finite"),
        ([], "top level"),
    ],
)
def test_a_broken_answer_is_named_by_its_place(answer, fault):
    with pytest.raises(ValueError, match=fault):
        read(answer)


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_said_to_be_none(body):
    with pytest.raises(ValueError, match="no JSON"):
        read_answer(body, TOKENIZED)


def test_times_longer_than_the_request_are_impossible():
    refuse_impossible_times(ANSWER, 21.5)
    with pytest.raises(ValueError, match="are 21\\.5, and the whole request took 2\\.1 ms"):
        refuse_impossible_times(ANSWER, 2.15)


def test_counters_are_read_by_name_and_must_be_numbers():
    text = '# TYPE a counter\nllamacpp:n_decode_total 4\nper_pos_total{position="1"} 2\n'
    assert read_counters(text) == {"n_decode_total": 4.0, "per_pos_total/1": 2.0}
    for broken in ("n_decode_total NaN\n", "n_decode_total four\n", "{{{\n"):
        with pytest.raises(ValueError):
            read_counters(broken)
