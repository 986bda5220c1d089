"""Campaigns in sittings whose speedups are planted: what intervals hold, and which answers come."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Answer, deciding_intervals, judge
from specmoe.analysis.deciding import look_confidence
from specmoe.analysis.intervals import joint_intervals
from specmoe.analysis.sittings import by_sitting, sitting_variance

from .planted_speedups import CONFIDENCE, PROMPTS, STATISTICS

_BLOCKS_APART = 0.05  # suite D of the shipped campaign `synthetic`, as in `planted_speedups`


class Held(NamedTuple):
    """The shares of campaigns whose intervals hold a truth."""

    these: float  # of the sittings that were measured, without what others add
    average: float  # of all sittings, by the intervals of advice
    another: float  # of the next sitting, by the same


def cell(
    generator: np.random.Generator, sittings: int, repeats: int, *, spread: float, truth: float = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows of a setting as the analysis has them, and the logarithm of each sitting.

    `truth` is the mean logarithm of all sittings; that of one is off by a normal error, such that
    two are apart by the standard deviation `spread`.
    """
    of_sitting = truth + spread / np.sqrt(2) * generator.standard_normal(sittings)
    repeat, prompt = (index.ravel() for index in np.indices((sittings * repeats, PROMPTS)))
    logs = np.repeat(of_sitting, repeats)[repeat]
    logs = logs + _BLOCKS_APART * generator.standard_normal(sittings * repeats)[repeat]
    blocks = pd.Series([f"S/t/d/r{number}" for number in range(sittings * repeats)])
    numbers = pd.Series(np.repeat(np.arange(sittings), repeats), index=blocks)
    frame = pd.DataFrame(
        {
            "block": blocks.to_numpy()[repeat],
            "repeat": repeat,
            "pass": 0,
            "prompt": prompt,
            "speedup": np.exp(logs),
        }
    )
    return by_sitting(frame, numbers), of_sitting


def coverage(
    sittings: int, repeats: int, *, spread: float, times: int, generator: np.random.Generator
) -> Held:
    """Return how often intervals hold the truths, with the spread that the configuration states."""
    held = np.zeros(3)
    for _ in range(times):
        own, of_sitting = cell(generator, sittings, repeats, spread=spread)
        another = spread / np.sqrt(2) * generator.standard_normal()
        known = {"": sitting_variance(own, STATISTICS.sitting_spread)}
        plain = joint_intervals({"": own}, CONFIDENCE)[""]
        advised = joint_intervals({"": own}, CONFIDENCE, known=known)[""]
        truths = (of_sitting.mean(), 0.0, another)
        for place, (interval, truth) in enumerate(
            zip((plain, advised, advised), truths, strict=True)
        ):
            held[place] += interval.low <= np.exp(truth) <= interval.high
    return Held(*(held / times))


def answers(
    sittings: int,
    *,
    truth: float,
    spread: float,
    times: int,
    generator: np.random.Generator,
) -> dict[Answer, float]:
    """Return how often each answer of a first look comes, at a planted speedup of all sittings."""
    confidence = look_confidence(CONFIDENCE, second=False)
    counts: Counter[Answer] = Counter()
    for _ in range(times):
        own, _ = cell(generator, sittings, 3, spread=spread, truth=float(np.log(truth)))
        known = {"": sitting_variance(own, STATISTICS.sitting_spread)}
        intervals = deciding_intervals({"": own}, confidence, known)
        counts[judge(intervals.assign(looping=0.0), looping_share=1)[0]] += 1
    return {answer: count / times for answer, count in counts.items()}
