"""Figures that others report: each row by its schema, and against what it is computed from."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from specmoe.models import reported
from specmoe.models.info import Size
from specmoe.models.reported import (
    Acceptance,
    Routing,
    Speedup,
    Verification,
    accepted_elsewhere,
    passes_elsewhere,
    read_reported,
    routing_elsewhere,
)


@pytest.mark.parametrize("kind", [Acceptance, Routing, Verification, Speedup])
def test_every_row_follows_its_schema_and_none_is_twice(kind):
    rows = read_reported(kind)
    assert len(rows) > 20 and len({*rows}) == len(rows)
    assert len({row.source for row in rows}) > 5


def test_shares_and_costs_follow_from_what_is_printed():
    for row in read_reported(Routing):
        even = Size(0, 0.0, 1.0, row.experts, row.used, 1).evenly_visited(row.width)
        assert row.over_uniform == pytest.approx(row.distinct / even, rel=2e-3), row
        assert row.used <= row.distinct <= row.used * row.width
    for row in read_reported(Verification):
        if row.ms and row.ms_single:
            assert row.cost == pytest.approx(row.ms / row.ms_single, rel=5e-3), row
    for row in read_reported(Acceptance):
        if row.tokens_per_round and row.gamma:
            assert row.tokens_per_round <= 1 + row.gamma, row


def test_a_speedup_is_that_of_its_rates_and_within_its_ends():
    for row in read_reported(Speedup):
        assert row.speedup or (row.low and row.high), row
        if row.low and row.high and row.speedup:
            assert row.low <= row.speedup <= row.high, row
        if row.baseline_tokens_per_second and row.claimed_tokens_per_second and row.speedup:
            quotient = row.claimed_tokens_per_second / row.baseline_tokens_per_second
            # Both rates are rounded as well.
            assert row.speedup == pytest.approx(quotient, rel=0.02, abs=0.005), row


GOOD = "model,experts,used,layer,width,distinct,over_uniform,printed,source\n"
GOOD += "m,8,2,0,2,3.0,0.86,three,https://example.org/x\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://example.org/x", ""),
        ("https://example.org/x", "javascript:alert(1)"),
        ("https://example.org/x", 'https://x"onmouseover'),
        ("3.0", "three"),
        ("3.0", "-3"),
        ("layer", "hue"),
        ("m,8,2,0", "m,8,2,1.5"),
    ],
)
def test_a_row_without_a_source_or_with_a_slip_is_refused(tmp_path, monkeypatch, old, new):
    monkeypatch.setattr(reported, "FOLDER", tmp_path)
    Path(tmp_path, "routing.csv").write_text(GOOD)
    assert read_reported.__wrapped__(Routing)[0].distinct == 3
    Path(tmp_path, "routing.csv").write_text(GOOD.replace(old, new))
    with pytest.raises(ValidationError):
        read_reported.__wrapped__(Routing)


def test_acceptance_is_that_of_the_method_at_this_length_on_models_of_this_size():
    low, high = accepted_elsewhere(34.66e9, 2.95e9, "mtp", 2)
    rows = [row for row in read_reported(Acceptance) if (row.total, row.gamma) == (35, 2)]
    assert low == min(row.accepted for row in rows if row.method == "mtp") and low <= high
    others = ((34.66e9, 2.95e9, "mtp", 63), (34.66e9, 34.66e9, "mtp", 2), (1e9, 1e9, "mtp", 2))
    assert [accepted_elsewhere(*other) for other in others] == [None] * 3


def test_ranges_are_those_of_whole_models():
    low, high = routing_elsewhere()
    assert 0.5 < low < high < 1
    costs = passes_elsewhere()
    assert [*costs] == sorted(costs) and all(1 <= low <= high for low, high in costs.values())
