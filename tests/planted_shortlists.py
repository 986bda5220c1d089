"""Campaigns with planted speedups and errors of prediction: does a shortlist change answers?"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Answer
from specmoe.analysis.gamma_curves import Predicted, gamma_curves
from specmoe.analysis.shortlist import Setting, worth_measuring
from specmoe.analysis.summaries import with_speedups
from specmoe.audit.reading import readings_of

from .planted_speedups import PROMPTS, STATISTICS, Spread, answers_of, campaign
from .unit import simulated_rounds

ON = {Answer.ON, Answer.HERE}
# Logarithms of speedup of four settings; in the last two cases the first one gains.
CASES = {
    "all at 1": [0.0] * 4,
    "one at 1, others lose": [0.0, -0.1, -0.2, -0.4],
    "one gains 10 %": [math.log(1.1), 0.0, -0.1, -0.2],
    "two gain 20 %": [math.log(1.2), math.log(1.19), 0.0, -0.2],
}


def predictions_held(
    repeats: int, *, noise: float, error: float, times: int, generator: np.random.Generator
) -> float:
    """Return how often the interval of a predicted speedup holds the measured one.

    Passes are timed in so many repeats with a noise, and what rounds take beside them moves the
    measured speedup by an error; both are deviations of a logarithm.
    """
    agrees = list(np.random.default_rng(3).random(simulated_rounds.N_PREDICT) < 0.75)
    runs = simulated_rounds.frame(simulated_rounds.agreed("B", "moe_q4", (4,), agrees))
    readings = readings_of(simulated_rounds.agreement("moe_q4", agrees))

    def predicted(passes: pd.DataFrame) -> pd.Series:
        tables = gamma_curves(with_speedups(runs), runs, readings, [], passes, STATISTICS)
        return tables["gamma_curves"].set_index("gamma").loc[4]

    truth = predicted(simulated_rounds.pass_times())["predicted"]
    held = 0
    for _ in range(times):
        measured = truth * math.exp(error * generator.standard_normal())
        passes = simulated_rounds.pass_times(repeats=repeats, noise=noise, generator=generator)
        found = predicted(passes)
        held += found["predicted_low"] <= measured <= found["predicted_high"]
    return held / times


class Share(NamedTuple):
    """Shares of campaigns: with all settings measured, and with a shortlist's; and of settings."""

    on: tuple[float, float]
    off: tuple[float, float]
    lost: float  # the best setting is not measured
    measured: float  # of the settings


def shortlisted(
    generator: np.random.Generator, truths: Sequence[float], error: float, shared: float
) -> list[int]:
    """Return which settings are worth measuring, by predictions with an error.

    `error` is the deviation of the logarithm, `shared` the share of its square that all settings of
    a target have in common.
    """
    noise = math.sqrt(shared) * generator.standard_normal()
    noise = noise + math.sqrt(1 - shared) * generator.standard_normal(len(truths))
    predicted = np.exp(np.array(truths) + error * noise)
    settings = [
        Setting(str(place), "target", Predicted(float(one), math.nan, math.nan, False))
        for place, one in enumerate(predicted)
    ]
    return sorted(int(name) for name in worth_measuring(settings, STATISTICS))


def count_answers(
    spread: Spread,
    truths: Sequence[float],
    *,
    shared: float,
    times: int,
    generator: np.random.Generator,
    error: float = STATISTICS.prediction_error,
) -> Share:
    """Return the answers within two looks where all settings are measured, and a shortlist's."""
    on, off = np.zeros(2), np.zeros(2)
    lost = measured = 0
    for _ in range(times):
        cells = campaign(
            generator, spread, STATISTICS.repeats_limit, truths, prompts=PROMPTS, passes=1
        )
        kept = shortlisted(generator, truths, error, shared)
        for way, names in enumerate([range(len(truths)), kept]):
            answer = answers_of({name: cells[name] for name in names})[-1]
            on[way] += answer in ON
            off[way] += answer == Answer.OFF
        lost += 0 not in kept
        measured += len(kept)
    return Share(
        tuple(on / times), tuple(off / times), lost / times, measured / times / len(truths)
    )
