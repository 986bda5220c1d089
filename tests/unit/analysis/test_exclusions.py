"""Exclusions: which settings are compared, and at which prompts; planted cases."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.exclusions import LEAST_PROMPTS, MOST_FLAGGED, at_all_prompts, is_excluded
from specmoe.analysis.intervals import mean_speedup, moderated

from .test_intervals import pairs

PROMPTS = [f"p{number}" for number in range(8)]
MOST = int(MOST_FLAGGED * len(PROMPTS))
HALF = int(LEAST_PROMPTS * len(PROMPTS))


def setting(*flagged, once=(), impossible=(), without=()):
    """Return a setting's pairs, two repeats of each prompt; those of named ones are flagged."""
    rows = [
        {
            "prompt": prompt,
            "flagged": prompt in (*flagged, *impossible) or (repeat == 0 and prompt in once),
            "impossible": repeat == 0 and prompt in impossible,
        }
        for prompt in PROMPTS
        for repeat in range(2)
        if prompt not in without
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("own", "excluded"),
    [
        pytest.param(setting("p1"), False, id="a prompt is lost"),
        pytest.param(setting(once=PROMPTS[: 2 * MOST]), False, id="pairs are left"),
        pytest.param(setting(impossible=["p1"]), True, id="impossible"),
        pytest.param(setting(*PROMPTS[:MOST]), False, id="most"),
        pytest.param(setting(*PROMPTS[: MOST + 1]), True, id="too many"),
        pytest.param(setting(without=PROMPTS[:HALF]), False, id="half of the prompts"),
        pytest.param(setting("p7", without=PROMPTS[:HALF]), True, id="lost and flagged"),
    ],
)
def test_settings_that_are_excluded(own, excluded):
    assert is_excluded(own, PROMPTS) == excluded


def simulated(generator, lacking, settings=6, prompts=5, blocks=3):
    """Return pairs of settings at 1, and the true mean of the first one at all prompts.

    Settings react to prompts in ways of their own; the first lacks so many prompts.
    """
    common = 0.3 * generator.normal(size=prompts)
    truth = common + 0.1 * generator.normal(size=(settings, 1, prompts))
    logs = truth + 0.02 * generator.normal(size=(settings, blocks, prompts))
    found = dict(enumerate(map(pairs, logs)))
    found[0] = found[0][~found[0]["prompt"].isin(PROMPTS[:lacking])]
    return found, truth[0].mean()


def test_a_mean_at_all_prompts_has_the_error_of_those_that_lack():
    generator, held, alone = np.random.default_rng(1), [], []
    for _ in range(100):
        settings, truth = simulated(generator, lacking=2)
        settings = at_all_prompts(settings)
        own, mean = settings[0], moderated([*map(mean_speedup, settings.values())])[0]
        off = abs(mean.log - truth)
        wider = mean._replace(error=np.hypot(mean.error, own["lacking_error"].iloc[0]))
        held.append(off < wider.reach(0.95))
        alone.append(off < mean.reach(0.95))
    assert np.mean(held) > 0.93
    assert np.mean(alone) < 0.6


def test_two_settings_and_three_prompts_do_not_tell_how_differently_they_react():
    settings, _ = simulated(np.random.default_rng(1), lacking=1, settings=2, prompts=3)
    assert np.isnan(at_all_prompts(settings)[0]["lacking_error"]).all()
