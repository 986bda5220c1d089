"""Priors that follow from shipped campaigns, and sessions that a campaign has itself."""

import math

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.gamma_curves import gamma_curves, squared_errors
from specmoe.analysis.intervals import mean_speedup
from specmoe.analysis.noise import Deviation, session_of, session_shifts
from specmoe.analysis.summaries import SETTING, is_no_control, make_pairs, usual, with_conditions
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.config.base import resource
from specmoe.config.schema import Statistics
from specmoe.models.info import load_infos
from specmoe.runs.other_tables import read_agreement, read_pass_times, undisturbed_passes
from specmoe.runs.schema import read_runs, undisturbed

from ...conftest import ROOT, shipped
from .test_intervals import one_by_one, pairs

STATISTICS = Statistics()
SHIPPED = sorted(folder.name for folder in (ROOT / "resources/campaigns").iterdir())


def settings_of(paired):
    """Return the pairs of each setting that is no control."""
    kept = paired[is_no_control(paired) | paired["forced_acceptance"].notna()]
    return [rows for _, rows in kept.groupby([*SETTING, "condition"], dropna=False)]


def block_deviation(paired):
    """Return the deviation of blocks, pooled over the settings of those pairs."""
    means = [*map(mean_speedup, settings_of(paired))]
    known = [one for one in means if one.repeated]
    degrees = np.array([one.degrees for one in known])
    squares = np.array([one.error**2 * one.number for one in known])
    return {"settings": len(known), "deviation": np.sqrt(np.average(squares, weights=degrees))}


def prediction_error(paired, runs, campaign):
    """Return how far speedups predicted from timed passes alone are from those of the pairs.

    Also how far those from the passes of one repeat are (`once`).
    """
    scores = scores_by_run(read_agreement(*campaign.table("agreement")))
    passes = undisturbed_passes(read_pass_times(*campaign.table("pass_times")))
    own, statistics = usual(paired[is_no_control(paired)]), campaign.config.statistics
    timed = [passes, *(of_repeat for _, of_repeat in passes.groupby("repeat"))]
    given = own, undisturbed(runs), scores, []
    every, *once = (gamma_curves(*given, some, statistics) for some in timed)
    return {
        "settings": every["speedup"].notna().sum(),
        "deviation": np.sqrt(np.mean(squared_errors(every))),
        "once": np.sqrt(np.mean(np.concatenate([*map(squared_errors, once)]))),
    }


def shipped_pairs(name, folder):
    """Return a shipped campaign, its runs, and its pairs that count."""
    campaign = shipped(name, folder)
    config, infos = campaign.config, load_infos(campaign.places.data / "models.json")
    runs = with_conditions(read_runs(campaign.places.data / "runs.parquet"))
    found = make_pairs(runs, config.audit.unrelated_drafts, infos, config.workloads)
    return campaign, runs, found[found["counts"] & found["paired"].astype(bool)]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_table_has_what_a_shipped_campaign_says(name, tmp_path):
    campaign, runs, paired = shipped_pairs(name, tmp_path)
    blocks, predicted = (resource("noise")[kind].get(name) for kind in ("blocks", "predictions"))
    assert (blocks is None) == (paired["repeat"].nunique() == 1)
    assert blocks is None or block_deviation(paired) == pytest.approx(blocks, abs=6e-5)
    assert (predicted is not None) == bool(campaign.table("agreement"))
    assert {*resource("noise")["blocks"], *resource("noise")["predictions"]} <= {*SHIPPED}
    if predicted:
        assert prediction_error(paired, runs, campaign) == pytest.approx(predicted, abs=6e-5)


@pytest.mark.parametrize("pair", [one for one in resource("noise")["sessions"] if "-" in one])
def test_what_was_measured_hours_apart_is_two_sessions(pair, tmp_path):
    parts = [shipped_pairs(name, tmp_path / name)[2] for name in pair.split()]
    assert session_shifts(settings_of(pd.concat(parts[:-1]))) == []
    settings = settings_of(pd.concat(parts))
    [(common, own)] = session_shifts(settings)
    found = {"settings": len(settings), "common": common, "own": own}
    assert found == pytest.approx(resource("noise")["sessions"][pair], abs=6e-5)


def test_sessions_are_as_far_apart_as_the_six_of_the_table():
    # 1e-4 times the roots of (383² + 42² + 545² + 306² + 175²) / 6 and (212² + 489² + 331²) / 6.
    assert session_of(STATISTICS) == pytest.approx((0.030815, 0.025613, 6), rel=1e-4)


def test_what_the_configuration_says_of_sessions_counts():
    said = session_of(Statistics(session_sd=0.1))
    assert said.common == 0.1
    assert said.own / said.common == pytest.approx(0.025613 / 0.030815, rel=1e-4)
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
    assert shift == (pytest.approx(0.06, rel=0.1), pytest.approx(0.04, rel=0.15))
    own, known = session_of(STATISTICS, settings), session_of(STATISTICS)
    assert known.common < own.common < 0.06
    assert own.degrees == known.degrees + 1
    one = [own[own["block"] < "r2"] for own in settings]
    assert session_shifts(one) == []
    assert session_of(STATISTICS, one) == known
