"""Numbers read as in print, and what was not measured is a dash."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis import number_text
from specmoe.analysis.number_text import THIN

FORMS = ["shown", "fixed", "percent", "thousands", "parameters", "size", "memory"]


@pytest.mark.parametrize("null", [None, np.nan, pd.NA, pd.NaT])
def test_what_was_not_measured_is_a_dash_and_not_zero(null):
    assert [getattr(number_text, form)(null) for form in FORMS] == ["–"] * len(FORMS)
    assert number_text.plus_minus(null) == ""
    assert number_text.interval(null, null) == ""


@pytest.mark.parametrize(
    ("form", "given", "text"),
    [
        ("fixed", (-0.25, 2), "−0.25"),
        ("fixed", (np.inf,), "∞"),
        ("fixed", (2057.44,), f"2{THIN}057.4"),
        ("parameters", (800_000_000,), f"0.8{THIN}B"),
        ("size", (43_000_000,), f"43.0{THIN}MB"),
        ("memory", (192 * 2**30,), f"192.0{THIN}GiB"),
        ("interval", (512, 1024), f"[512.00, 1{THIN}024.00]"),
        ("interval", (0.5, 2.0), "[0.50, 2.00]"),
        # An open end and a difference are not judged by their ratio.
        ("interval", (1.0, None), "[1.00, –]"),
        ("interval", (-0.1, 0.4), "[−0.10, 0.40]"),
        ("span", ((0.592, 0.594), 2), "0.59"),
        ("span", ((0.59, 0.6), 2, "–"), "0.59–0.60"),
        ("prompts_in_short", ("chats-a, chats-b",), "chats (2)"),
    ],
)
def test_numbers_read_as_in_print(form, given, text):
    assert getattr(number_text, form)(*given) == text


def test_an_interval_wider_than_4_to_1_says_that_repeats_are_too_few_but_for_a_share():
    for low, high in ((0.5, 2.01), (0.0, 315610.74), (0.02, 18.2), (0.9, np.inf), (0.0, np.inf)):
        assert number_text.interval(low, high) == number_text.TOO_FEW
        assert number_text.measured(1.0, low, high) == "1.00 (too few repeats)"
    assert number_text.interval(1.0, 40.0, 0, ratio=False) == "[1, 40]"
