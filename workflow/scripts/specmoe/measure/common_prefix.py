"""The common prefix of two generations."""

from collections.abc import Sequence


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many elements two lists share, counted from the start."""
    for length, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return length
    return min(len(first), len(second))
