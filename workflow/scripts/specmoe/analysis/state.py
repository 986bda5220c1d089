"""The speedup by the machine's momentary state, of which the *other* baselines tell.

Where each setting has a baseline of its own, a block has others of the same prompt, and all these
differ in nothing but what was measured before them. So their ratio must be 1, the A/A control: else
the order of runs, or what a setting leaves behind it in the machine, is in the speedups.

They share no noise with the pair that they stand beside; by its own, a slow baseline raises a
speedup, which is arithmetic. Blocks are compared with those of the same prompts alone, setting by
setting. The other baselines have noise too, which flattens the line: the state itself may matter
more.

What of the state moves it is not known here; `tests/benchmarks/README.md` says what planted loads
did, how often a line is called clear, and how often where nothing is there.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Status
from specmoe.analysis.decision import LITTLE
from specmoe.analysis.intervals import Estimate, Mean, mean_speedup, moderated
from specmoe.analysis.summaries import SETTING, by_group
from specmoe.config.block import MEASURED_BY, Protocol
from specmoe.config.schema import Statistics

CLEAR = 0.995
"""The confidence of a slope's interval: states last, and few blocks do not tell how long."""
QUARTERS = 4
TOLERANCE = 0.02
"""A ratio that surely differs from 1 by more fails: a fifth of the gain that is worth having
(`decision.LITTLE`), as the speedups of the setting are wrong by just as much."""
ROUNDING = 1e-9  # of the logarithms of rates that are equal
_PLACE = ["block", "prompt"]
_CELL = [*SETTING, "prompt"]
_MEASURED = ["other", "gain"]


class Line(NamedTuple):
    """A line through the origin: gains over the other baselines, logarithms less their means.

    quarters: blocks by their place in time, the slowest others first; others: the mean of each.
    """

    slope: Estimate
    degrees: int
    deviation: float  # of a block from it
    quarters: list[np.ndarray]
    others: np.ndarray

    @classmethod
    def through(cls, other: np.ndarray, gain: np.ndarray, strata: int) -> Self:
        """Return the line of arrays (blocks in time, what each compares), NaN where it does not.

        Means were taken over the blocks of each of the `strata`, see `intervals`. The error is that
        of residuals in a random order of these blocks. Where neighbours in time are alike in both
        it is wider, as M. S. Bartlett found for correlations of two series (Some Aspects of the
        Time-Correlation Problem, 1935).
        """
        square = np.nansum(other**2)
        slope = np.nansum(other * gain) / square
        rest = gain - slope * other
        by_block = np.nanmean(other, axis=1), np.nanmean(rest, axis=1)
        degrees = len(gain) - strata - 1
        # The sum of products of every block's baselines with every block's residuals.
        crossed = np.square(np.nan_to_num(other) @ np.nan_to_num(rest).T).sum()
        alike = _alike(by_block[0]) * _alike(by_block[1])
        error = np.sqrt(crossed * strata / degrees * (1 + alike) / (1 - alike)) / square
        reach = float(Mean(slope, error, degrees).reach(CLEAR))
        quarters = np.array_split(np.argsort(by_block[0], kind="stable"), QUARTERS)
        return cls(
            Estimate(slope, slope - reach, slope + reach),
            degrees,
            float(np.sqrt((by_block[1] ** 2).sum() / degrees)),
            quarters,
            np.array([by_block[0][part].mean() for part in quarters]),
        )

    @property
    def clear(self) -> bool:
        """Whether the slope is not 0, and its gain between the ends is one that is worth having."""
        change = abs(self.slope.value * (self.others[-1] - self.others[0]))
        return bool(change > np.log(LITTLE) and self.slope.low * self.slope.high > 0)


def _alike(series: np.ndarray) -> float:
    """Return the correlation of neighbours, of a series less its mean, from 0 on."""
    seen = (series[1:] @ series[:-1]) / max(series @ series, 1e-12) + 1 / len(series)
    return float(np.clip(seen, 0, 0.9))


def state(
    pairs: pd.DataFrame, advice: pd.DataFrame, compared: pd.DataFrame, statistics: Statistics
) -> pd.DataFrame:
    """Return the table `state`.

    `pairs` are those that count at the campaign's own conditions, controls too; `advice` and
    `compared` are the tables of `advice_from`. A target has rows only if two blocks a quarter can
    be compared.
    """
    rows = with_other_baselines(pairs)
    compared = compared[compared["status"].isin([Status.BEST, Status.COMPARED, Status.BEATEN])]
    rows = rows.merge(compared.merge(advice[["target", "prompt_set"]])[SETTING])
    rows = rows[rows.groupby(_CELL)["block"].transform("nunique") > 1]
    return by_group(rows, ["target"], lambda members: _quarters(members, statistics.confidence))


def with_other_baselines(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that have others beside them: gain, own and other, all as logarithms.

    These are the speedup, the rate of the pair's baseline, and the mean rate of the other baselines
    of the block and prompt.
    """
    pairs = pairs[pairs["paired"].astype(bool)]
    logs = np.log(pairs[["baseline_tokens_per_second", "speedup"]].astype(float))
    pairs = pairs.assign(own=logs["baseline_tokens_per_second"], gain=logs["speedup"])
    beside = pairs.drop_duplicates("baseline").groupby(_PLACE)["own"].agg(["sum", "count"])
    pairs = pairs.join(beside, on=_PLACE)
    pairs = pairs[pairs["count"] > 1]
    return pairs.assign(other=(pairs["sum"] - pairs["own"]) / (pairs["count"] - 1))


def _quarters(rows: pd.DataFrame, confidence: float) -> Iterator[dict[str, Any]]:
    blocks, cells = rows.groupby("block"), rows.groupby(_CELL)[_MEASURED]
    moved = rows[["block"]].assign(cell=cells.ngroup())
    moved[_MEASURED] = rows[_MEASURED] - cells.transform("mean")
    strata = len(blocks[["suite", "prompt"]].min().drop_duplicates())
    moves = moved["other"].abs().max() > ROUNDING
    if len(blocks) < max(2 * QUARTERS, strata + 2) or not moves:
        return
    in_time = blocks["started_at"].min().sort_values(kind="stable").index
    by_cell = moved.groupby(["block", "cell"]).mean().unstack().loc[in_time]
    other, gain = (by_cell[name].to_numpy() for name in _MEASURED)
    line = Line.through(other, gain, strata)
    gain, level = np.nanmean(gain, axis=1), cells.mean().mean()
    for quarter, part in enumerate(line.quarters):
        mean, error = level["gain"] + gain[part].mean(), line.deviation / np.sqrt(len(part))
        yield {
            "quarter": quarter + 1,
            "blocks": len(part),
            "settings": len(rows[SETTING].drop_duplicates()),
            "other_tokens_per_second": np.exp(level["other"] + line.others[quarter]),
            **Mean(mean, error, line.degrees).estimate(confidence).columns("speedup"),
            "expected": np.exp(level["gain"] + line.slope.value * line.others[quarter]),
            **line.slope.columns("slope"),
            "clear": line.clear,
        }


def baselines_beside(pairs: pd.DataFrame, statistics: Statistics) -> pd.DataFrame:
    """Return the table `baselines_beside`, of the pairs that count at the campaign's conditions."""
    beside = with_other_baselines(pairs[pairs["protocol"] == Protocol.PAIRED])
    beside = beside.drop_duplicates([*SETTING, "baseline"]).drop_duplicates("baseline", keep=False)
    beside = beside.assign(speedup=np.exp(beside["own"] - beside["other"]))
    rows = []
    for _, of_target in beside.groupby("target"):
        settings = dict(iter(of_target.groupby([*MEASURED_BY, *SETTING])))
        means = moderated([*map(mean_speedup, settings.values())])
        for (key, its), mean in zip(settings.items(), means, strict=True):
            low, high = mean.interval(statistics.confidence, len(settings))
            rows.append(
                dict(zip([*MEASURED_BY, *SETTING], key, strict=True))
                | {"runs": len(its), "blocks": its["block"].nunique()}
                | {"ratio": math.exp(mean.log), "ratio_low": low, "ratio_high": high}
                | {"failed": low > 1 + TOLERANCE or high < 1 / (1 + TOLERANCE)}
            )
    return pd.DataFrame(rows)
