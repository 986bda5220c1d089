"""How a context is cut into batches."""

import pytest

from specmoe.measure.divergence import batches


@pytest.mark.parametrize(
    ("count", "width", "sizes"),
    [(0, 4, []), (3, 1, [1, 1, 1]), (8, 4, [4, 4]), (9, 4, [1, 4, 4]), (3, 4, [3])],
)
def test_only_the_first_batch_may_be_smaller(count, width, sizes):
    assert batches(count, width) == sizes
