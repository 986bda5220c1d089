"""Shipped campaigns render to the numbers and words of `golden.txt`, see `golden.py`."""

from ..golden import check


def test_what_shipped_campaigns_render_to_is_as_golden_txt_says():
    check()
