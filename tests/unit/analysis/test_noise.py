"""Priors that follow from shipped campaigns, and sessions that a campaign has itself."""

import math

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.noise import Deviation, prior, session_of, session_shifts
from specmoe.config.base import resource
from specmoe.config.schema import Statistics

from ...shipped_noise import deviations_of
from .test_intervals import one_by_one, pairs

STATISTICS = Statistics()


def test_every_shipped_campaign_is_in_the_table(root):
    shipped = {folder.name for folder in (root / "resources/campaigns").iterdir()}
    assert shipped == set(resource("noise")["blocks"])


@pytest.mark.parametrize("campaign", resource("noise")["blocks"])
def test_the_table_has_what_a_shipped_campaign_says(campaign, root):
    found = deviations_of(root / "resources/campaigns" / campaign)
    table = {kind: rows[campaign] for kind, rows in resource("noise").items() if campaign in rows}
    assert found.keys() == table.keys()
    for kind, row in found.items():
        assert row == pytest.approx(table[kind], abs=6e-5)


def test_priors_are_the_root_mean_squares_of_the_table():
    for kind, part in (("blocks", "deviation"), ("sessions", "common"), ("sessions", "own")):
        draws = [row[part] for row in resource("noise")[kind].values()]
        square = sum(one**2 for one in draws) / len(draws)
        assert prior(kind, part) == (pytest.approx(math.sqrt(square)), len(draws))
    session = session_of(STATISTICS)
    assert session == (*(prior("sessions", part).value for part in ("common", "own")), 4)


def test_what_the_configuration_says_of_sessions_counts():
    said = session_of(Statistics(session_sd=0.1))
    assert said.common == 0.1
    assert said.own / said.common == pytest.approx(session_of(STATISTICS).own / 0.0334, rel=0.01)
    assert session_of(Statistics(session_sd=0.0)).reach == 0


def test_a_deviation_is_shrunk_to_the_prior():
    assert Deviation(0.1, 3).shrunk([]) == (0.1, 3)
    assert Deviation(0.1, 3).shrunk([0.04]) == (pytest.approx(math.sqrt(0.07 / 4)), 4)


def two_sessions(common, own, form, *, settings=200):
    """Return settings of which each session has two repeats; they differ by these deviations."""
    generator = np.random.default_rng(5)
    found = []
    for _ in range(settings):
        logs = generator.normal(0, 0.1, 5) + 0.02 * generator.standard_normal((4, 5))
        logs[2:] += math.sqrt(2) * (common + own * generator.standard_normal())
        frame = form(logs)
        repeat = frame["block"].str[1].astype(int)
        hours = 0.5 * repeat + 3 * (repeat > 1)
        began = pd.Timestamp("2026-01-01") + pd.to_timedelta(hours, unit="h")
        found.append(frame.assign(started_at=began))
    return found


@pytest.mark.parametrize("form", [pairs, one_by_one])
def test_a_campaign_of_two_sessions_says_how_far_they_are_apart(form):
    settings = two_sessions(0.06, 0.04, form)
    [shift] = session_shifts(settings)
    assert shift == (200, pytest.approx(0.06, rel=0.1), pytest.approx(0.04, rel=0.15))
    own, known = session_of(STATISTICS, settings), session_of(STATISTICS)
    assert known.common < own.common < 0.06
    assert own.degrees == known.degrees + 1
    one = [own[own["block"] < "r2"] for own in settings]
    assert session_shifts(one) == []
    assert session_of(STATISTICS, one) == known
