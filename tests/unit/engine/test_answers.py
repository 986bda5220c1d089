"""Answers of a server are read whole, and what they lack is named."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.engine.answers import COMPLETION, read_answer, read_counters, read_events

from ...streamed import event, streamed

TIMINGS = {"prompt_n": 3, "prompt_ms": 1.5, "predicted_ms": 20}
ANSWER = {"tokens": [1, 2], "timings": TIMINGS, "content": "ab"}
# Three tokens: one of the prompt's pass, then two of one pass.
EVENTS = [event([7], 1), event([8], 2), event([9], 3), event([], 3, stop=True, stop_type="limit")]


def test_a_sound_answer_is_returned_whole():
    assert read_answer(json.dumps(ANSWER).encode(), *COMPLETION) == ANSWER
    assert read_answer(b'[{"n_ctx": 512, "id": 0}]', "n_ctx") == [{"n_ctx": 512, "id": 0}]
    assert read_answer(b"{}") == {}


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"{}", "no tokens: {}"),
        (b'{"tokens": null}', "no tokens"),
        (b'{"tokens": [1], "timings": {"prompt_n": 1}}', r"no timings\.prompt_ms"),
        (b'{"tokens": [1], "timings": 1}', r"no timings\.prompt_n"),
        (b"[]", "no tokens"),
        (b"", "no JSON"),
        (b"<html>", "no JSON: <html>"),
        (b"\xff\xfe", "no JSON"),
    ],
)
def test_what_an_answer_lacks_is_named(answer, fault):
    with pytest.raises(ValueError, match=fault):
        read_answer(answer, *COMPLETION)


@given(st.lists(st.integers(1, 400), max_size=12))
def test_the_bytes_of_events_may_come_in_any_chunks(cuts):
    data = b":\n\n" + streamed(EVENTS)  # a sign of life is no event
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert list(read_events(data[start:end] for start, end in pairwise(places))) == EVENTS


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([], "without its last event"),
        (EVENTS[:2], "without its last event"),
        ([{"error": {"code": 500, "message": "out of luck"}}], "error in its stream.*out of luck"),
        ([{"tokens": []}], "no tokens_predicted"),
    ],
)
def test_a_stream_that_fails_is_named(events, fault):
    with pytest.raises(ValueError, match=fault):
        list(read_events([streamed(events)]))


def test_counters_are_read_by_name():
    text = '# TYPE a counter\nllamacpp:n_decode_total 4\nper_pos_total{position="1"} 2\n'
    assert read_counters(text) == {"n_decode_total": 4.0, "per_pos_total/1": 2.0}
    for broken in ("n_decode_total four\n", "{{{\n"):
        with pytest.raises(ValueError):
            read_counters(broken)
