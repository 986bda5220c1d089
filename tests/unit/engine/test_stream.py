"""The events of a stream, and what is none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.engine.stream import read_pieces

from ...streamed import event, streamed

# Three tokens: one of the prompt's pass, then two of one pass.
EVENTS = [
    event([7], 1, 0.001),
    event([8], 2, 5.5),
    event([9], 3, 5.5),
    event([], 3, 5.5, stop=True, stop_type="limit"),
]


def read(*events, n_predict=3, every=20.0):
    """Read events, the first of which comes after `every` ms, the second after twice that."""
    chunks = [(streamed([one]), every * (at + 1)) for at, one in enumerate(events)]
    return list(read_pieces(chunks, n_predict))


def test_an_event_is_a_piece_with_its_tokens_and_the_servers_time():
    pieces = read(*EVENTS)
    assert [piece.tokens for piece in pieces] == [[7], [8], [9], []]
    assert [piece.server_ms for piece in pieces] == [1.501, 7.0, 7.0, 7.0]
    assert [piece.last for piece in pieces] == [False, False, False, True]


@given(st.lists(st.integers(1, 400), max_size=12))
def test_bytes_may_come_in_any_chunks(cuts):
    data = streamed(EVENTS)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [(data[start:end], 100.0 + end) for start, end in pairwise(places)]
    assert [piece.tokens for piece in read_pieces(chunks, 3)] == [[7], [8], [9], []]


def test_a_sign_of_life_is_no_event():
    chunks = [(b":\n\n" + streamed(EVENTS[:2]), 20.0), (b":\n\n" + streamed(EVENTS[2:]), 30.0)]
    assert len(list(read_pieces(chunks, 3))) == 4


def test_tokens_without_an_event_count_and_come_with_the_next():
    pieces = read(EVENTS[0], event([9], 3, 5.5), EVENTS[-1])
    assert [piece.generated for piece in pieces] == [1, 3, 3]


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([], "ended after 0 tokens"),
        (EVENTS[:2], "ended after 2 tokens"),
        ([*EVENTS, EVENTS[-1]], "after the last"),
        ([EVENTS[1], EVENTS[0], EVENTS[-1]], "goes back"),
        ([EVENTS[0], event([8], 2, 0.0005), EVENTS[-1]], "goes back"),
        ([EVENTS[0], event([8, 9], 2, 5.5), EVENTS[-1]], "goes back"),
        ([EVENTS[0], event([8], 10**12, 5.5)], "1000000000000 tokens in its stream instead of 3"),
        ([{"error": {"code": 500, "message": "out of luck"}}], "error in its stream.*out of luck"),
        ([EVENTS[0] | {"tokens": ["a"]}], r"tokens\.0: "),
        ([event([7], 1, float("nan"))], "finite"),
        ([event([7], 1, 1e6)], "the whole request took"),
        ([[]], "top level"),
    ],
)
def test_a_broken_event_is_named(events, fault):
    with pytest.raises(ValueError, match=fault):
        read(*events)


@pytest.mark.parametrize("data", [b"<html>\n", b"data: {\n\n", b"data: \xff\n\n", b"event: a\n"])
def test_what_is_no_event_is_refused(data):
    with pytest.raises(ValueError, match=r"no JSON|no event"):
        list(read_pieces([(data, 1.0)], 3))
