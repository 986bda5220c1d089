"""Waiting times with a planted quantile, and how often its intervals hold it."""

import math

import numpy as np
import pandas as pd
from scipy.special import ndtri

from specmoe.analysis.latency import interval_of_quantile

OF_BLOCK, OF_TIME = 0.1, 0.3  # standard deviations of logarithms: of blocks, and within one
AT_ONCE = 1 / 3  # share of tokens that come with another


def planted_quantile(share: float) -> float:
    """Return the quantile of the times that `planted_waits` draws; 0 up to AT_ONCE."""
    beyond = (share - AT_ONCE) / (1 - AT_ONCE)
    return math.exp(ndtri(beyond) * math.hypot(OF_BLOCK, OF_TIME)) if beyond > 0 else 0.0


def planted_waits(generator: np.random.Generator, blocks: int, waits: int) -> pd.DataFrame:
    """Return so many waiting times of each block: a third is 0, the others are log-normal."""
    levels = generator.normal(0, OF_BLOCK, blocks)
    times = np.exp(generator.normal(np.repeat(levels, waits), OF_TIME))
    times[generator.random(len(times)) < AT_ONCE] = 0
    return pd.DataFrame({"ms": times, "block": np.repeat(np.arange(blocks), waits)})


def coverage(
    share: float, blocks: int, waits: int, times: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Return the shares of 95 % intervals that hold the quantile, and that have an open end."""
    truth, held, opened = planted_quantile(share), 0, 0
    for _ in range(times):
        ends = interval_of_quantile(planted_waits(generator, blocks, waits), share, 0.95)
        held += not (ends.low > truth or ends.high < truth)
        opened += any(map(math.isnan, ends))
    return held / times, opened / times
