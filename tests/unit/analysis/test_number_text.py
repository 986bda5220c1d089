"""Numbers read as in print, and what was not measured is a dash."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis import number_text
from specmoe.analysis.number_text import THIN


@pytest.mark.parametrize("null", [None, np.nan, pd.NA, pd.NaT])
def test_what_was_not_measured_is_a_dash_and_not_zero(null):
    for form in (
        number_text.shown,
        number_text.fixed,
        number_text.percent,
        number_text.thousands,
        number_text.parameters,
        number_text.size,
        number_text.memory,
        number_text.bandwidth,
    ):
        assert form(null) == "–"
    assert number_text.plus_minus(null) == ""
    assert number_text.interval(null, null) == ""
    assert number_text.interval(1.0, null) == "[1.00, –]"


def test_numbers_have_the_digits_asked_for():
    assert number_text.fixed(1.005e2, 2) == "100.50"
    assert number_text.fixed(-0.25, 2) == "−0.25"
    assert number_text.fixed(np.inf) == "∞"
    assert number_text.percent(0.0254) == "2.5"
    assert number_text.interval(1.234, 1.5) == "[1.23, 1.50]"


def test_thin_spaces_stand_between_thousands_and_before_units():
    assert number_text.thousands(1234567) == f"1{THIN}234{THIN}567"
    assert number_text.fixed(2057.44) == f"2{THIN}057.4"
    assert number_text.interval(512, 1024) == f"[512.00, 1{THIN}024.00]"
    assert number_text.parameters(35_000_000_000) == f"35.0{THIN}B"
    assert number_text.parameters(800_000_000) == f"0.8{THIN}B"
    assert number_text.parameters(21_300_000) == f"21.3{THIN}M"
    assert number_text.size(20_600_000_000) == f"20.6{THIN}GB"
    assert number_text.size(43_000_000) == f"43.0{THIN}MB"
    assert number_text.memory(192 * 2**30) == f"192.0{THIN}GiB"
    assert number_text.plus_minus(0.25, 2) == f"±{THIN}0.25"


def test_an_interval_wider_than_4_to_1_says_that_repeats_are_too_few():
    assert number_text.interval(0.5, 2.0) == "[0.50, 2.00]"
    for low, high in ((0.5, 2.01), (0.0, 315610.74), (0.02, 18.2), (0.9, np.inf), (0.0, np.inf)):
        assert number_text.interval(low, high) == number_text.TOO_FEW
        assert number_text.measured(1.0, low, high) == "1.00 too few repeats"
    assert number_text.measured(1.0, None, None) == "1.00"


def test_an_open_end_a_difference_and_a_share_are_not_judged_by_their_ratio():
    assert number_text.interval(0.5, None) == "[0.50, –]"
    assert number_text.interval(-0.1, 0.4) == "[−0.10, 0.40]"
    assert number_text.interval(1.0, 40.0, 0, ratio=False) == "[1, 40]"
