"""The bytes that a pass over a model reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.models.sizes import Size


@given(st.integers(1, 64), st.integers(1, 8), st.integers(8, 256))
def test_a_wider_pass_reads_more_experts_and_at_most_all(width, used, experts):
    size = Size(10, 3.0, 7.0, experts, used, 1, "")
    assert size.pass_bytes(width) <= size.pass_bytes(width + 1) <= 10
    assert size.pass_bytes(1) == pytest.approx(3 + 7 * used / experts)
