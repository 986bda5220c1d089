"""How long an answer lets one wait: distributions of the times that serving benchmarks count.

Tokens that a round accepts arrive together. Between tokens they are 0 ms apart, so drafting lowers
the median time between tokens, to 0 where most tokens come with another, while the longest times
become those of whole rounds. Serving benchmarks count the time between arrivals instead, in which
such tokens are one. Both are here; the time per token of a run is the mean of the first kind.
"""

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import NO_INTERVAL, Estimate, Interval, student_quantile
from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import CELL, by_group
from specmoe.config.block import MEASURED_BY, NO_DRAFT
from specmoe.config.schema import Statistics

# A quantile has so many observations beyond it at least: the median 20 in all, p99 1000.
LEAST_BEYOND = 10
_ROUNDING = 1e-9
_CELL = [*CELL, *MEASURED_BY]


class Time(StrEnum):
    """A time that one waits."""

    FIRST = "first token"
    MEAN = "per token, mean of a run"
    BETWEEN_TOKENS = "between tokens"
    BETWEEN_ARRIVALS = "between arrivals"
    WHOLE = "whole answer"


QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_SHARES = np.arange(1, 100) / 100  # of the curves


def latency_of_cells(runs: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return the quantiles of each time of each cell, beside those of the cell's baselines.

    `runs` are those of `build.usual_runs` but for controls, targets alone among them. A cell has a
    row for each time of which p90 is known with and without a draft, so 100 runs at least, or 100
    tokens of streamed runs. Columns: those of the cell, protocol, engine; time (see `Time`),
    time_rank, observations, runs, blocks (with a draft); p50, p90, p99 in ms and the same with
    `baseline_` before, each with its interval, see `quantile` and `interval_of_quantile`.
    """

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        baselines = _baselines(runs, members)
        for rank, time in enumerate(Time):
            with_draft, alone = observe(members, time), observe(baselines, time)
            if min(len(with_draft), len(alone)) >= _needed(QUANTILES["p90"]):
                yield {
                    "time": time.value,
                    "time_rank": rank,
                    "observations": len(with_draft),
                    "runs": len(members),
                    "blocks": members["block"].nunique(),
                    **_quantiles("", with_draft, settings.confidence),
                    **_quantiles("baseline_", alone, settings.confidence),
                }

    drafted = runs[runs["draft"] != NO_DRAFT]
    return by_group(drafted, _CELL, rows, TABLES["latency"].columns)


def curves_between_tokens(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the distribution of the time between tokens of each cell, and of its baselines.

    `runs` as in `latency_of_cells`. Columns: those of the cell (draft `none` and γ 0: the
    baselines of its suite's cells), protocol, engine; ms, below which a `share` of the times is, at
    each hundredth. Cells whose hundredths are not known, see `quantile`, have none.
    """

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        alone = {"draft": NO_DRAFT, "gamma": 0}
        for its, named in ((_baselines(runs, members), alone), (members, {})):
            times = observe(its, Time.BETWEEN_TOKENS)["ms"]
            if len(times) >= _needed(_SHARES[-1]):
                ends = np.quantile(times, _SHARES, method="inverted_cdf")
                for share, end in zip(_SHARES, ends, strict=True):
                    yield named | {"share": share, "ms": end}

    drafted = runs[runs["draft"] != NO_DRAFT]
    curves = by_group(drafted, _CELL, rows)
    once = [*_CELL, "share"]
    return curves if curves.empty else curves.drop_duplicates(once, ignore_index=True)


def observe(runs: pd.DataFrame, time: Time) -> pd.DataFrame:
    """Return the observations of a time in some runs: columns ms and block.

    A run has one, or one for each pair of neighbouring tokens or arrivals, if it was streamed. A
    run whose times are not known has none.
    """
    runs = runs.reset_index(drop=True)
    own: pd.Series[Any]
    if time in (Time.BETWEEN_TOKENS, Time.BETWEEN_ARRIVALS):
        times = runs["token_ms"].dropna().map(np.asarray)
        own = (times if time == Time.BETWEEN_TOKENS else times.map(np.unique)).map(np.diff)
        own = own.explode()
    elif time == Time.MEAN:
        own = 1000 / runs["tokens_per_second"]
    else:
        own = runs["prompt_ms"] + (runs["decode_ms"] if time == Time.WHOLE else 0)
    known = own.dropna().astype(float)
    return pd.DataFrame({"ms": known, "block": runs["block"].reindex(known.index)})


def quantile(observed: pd.DataFrame, share: float) -> float:
    """Return the least time that a share of the observations does not exceed.

    NaN unless LEAST_BEYOND observations at least are beyond it.
    """
    if len(observed) < _needed(share):
        return math.nan
    return float(np.quantile(observed["ms"], share, method="inverted_cdf"))


def interval_of_quantile(observed: pd.DataFrame, share: float, confidence: float) -> Interval:
    """Return the interval of a quantile over blocks, made of observations themselves.

    R. S. Woodruff, Confidence intervals for medians and other position measures, Journal of the
    American Statistical Association 47 (1952): the share of observations up to the quantile has an
    interval, here Student's over blocks, and the quantiles at its ends are the interval. The
    standard error is at least that of independent observations, as few blocks may agree by chance.
    An end beyond the observations is NaN, and both are with a single block. `tests/benchmarks/
    interval_coverage.py` shows how often it holds the truth.
    """
    value = quantile(observed, share)
    by_block = (observed["ms"] <= value).groupby(observed["block"]).agg(["sum", "size"])
    if math.isnan(value) or len(by_block) < 2:
        return NO_INTERVAL
    count, blocks = len(observed), len(by_block)
    beyond = by_block["sum"] - by_block["sum"].sum() / count * by_block["size"]
    error = math.sqrt((beyond**2).sum() * blocks / (blocks - 1)) / count
    error = max(error, math.sqrt(share * (1 - share) / count))
    half = student_quantile(blocks - 1, confidence) * error
    low, high = (
        float(np.quantile(observed["ms"], end, method="inverted_cdf")) if 0 < end < 1 else math.nan
        for end in (share - half, share + half)
    )
    return Interval(low, high)


def _quantiles(of: str, observed: pd.DataFrame, confidence: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, share in QUANTILES.items():
        ends = interval_of_quantile(observed, share, confidence)
        found |= Estimate(quantile(observed, share), *ends).columns(f"{of}{name}")
    return found


def _needed(share: float) -> int:
    return math.ceil(LEAST_BEYOND / (1 - share) - _ROUNDING)


def _baselines(runs: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["run"].isin(members["baseline"].dropna())]
