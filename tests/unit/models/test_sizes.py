"""The bytes that a pass over a model reads."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.models.sizes import Size

ROUTED = Size(10, 3.0, 7.0, 256, 8, 1, "")


@given(st.integers(1, 64), st.integers(1, 8), st.integers(8, 256))
def test_a_wider_pass_reads_more_experts_and_at_most_all(width, used, experts):
    size = Size(10, 3.0, 7.0, experts, used, 1, "")
    assert size.pass_bytes(width) <= size.pass_bytes(width + 1) <= 10
    assert size.pass_bytes(1) == pytest.approx(3 + 7 * used / experts)


def test_experts_that_were_seen_replace_those_of_even_routing_by_their_share():
    even = ROUTED.evenly_visited
    seen = replace(ROUTED, seen_experts=((1, 8.0), (5, even(5) * 0.9), (17, even(17) * 0.8)))
    assert seen.visited(1) == 8
    assert seen.visited(5) == pytest.approx(even(5) * 0.9)
    assert seen.visited(11) == pytest.approx(even(11) * 0.85)
    assert seen.visited(65) == pytest.approx(even(65) * 0.8)
    assert seen.pass_bytes(17) == pytest.approx(3 + 7 * even(17) * 0.8 / 256)


def test_a_dense_model_visits_no_experts():
    assert Size(10, 10.0, 0.0, 0, 0, 1, "").visited(5) == 0
