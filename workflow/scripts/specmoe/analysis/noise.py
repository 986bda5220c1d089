"""Noise as estimates: how far sessions, blocks, and predictions and measurements are apart.

All are standard deviations of logarithms. `resources/noise.yaml` has those of shipped campaigns and
of their history, each of which is a draw; their root mean square is the prior. What a campaign
shows of its own noise is shrunk to the prior, which weighs as much as the draws that it is made of.
The head of the file says how it was made.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import Mean, Session, block_mean, mean_speedup
from specmoe.config.base import resource
from specmoe.config.schema import Statistics

# Measurements of one session follow one another; blocks of the largest shipped one took minutes.
SESSION_GAP = pd.Timedelta(hours=2)


class Deviation(NamedTuple):
    """A standard deviation, and the degrees of freedom that it is known with."""

    value: float
    degrees: float

    def shrunk(self, squares: Sequence[float]) -> "Deviation":
        """Return it after further draws."""
        total = self.degrees + len(squares)
        return Deviation(math.sqrt((self.degrees * self.value**2 + sum(squares)) / total), total)


def prior(kind: str, part: str = "deviation") -> Deviation:
    """Return the prior of `sessions` (`common`, `own`), `blocks` or `predictions` (also `once`).

    That of blocks decides nothing: a setting's own blocks do. It is what simulations take as usual.
    """
    draws = np.array([draw[part] for draw in resource("noise")[kind].values()])
    return Deviation(math.sqrt((draws**2).mean()), len(draws))


def session_of(statistics: Statistics, settings: Sequence[pd.DataFrame] = ()) -> Session:
    """Return how far sessions are apart: as the configuration says, else as estimated.

    `settings` are the compared runs of each; where they lie in several sessions these count too.
    The configuration says the common part; that of each setting's own is in proportion.
    """
    common, each = prior("sessions", "common"), prior("sessions", "own")
    if (said := statistics.session_sd) is not None:
        return Session(said, said * each.value / common.value)
    shifts = session_shifts(settings)
    common = common.shrunk([of_all**2 for of_all, _ in shifts])
    each = each.shrunk([of_each**2 for _, of_each in shifts])
    return Session(common.value, each.value, common.degrees)


def session_shifts(settings: Sequence[pd.DataFrame]) -> list[tuple[float, float]]:
    """Return what one of each two sessions that follow one another differs by from their mean.

    These are standard deviations: of all settings together, and of each by itself. Settings, of
    which these are the compared runs, are compared on the prompts of both sessions. By moments;
    none of a single setting, nor in a single session.
    """
    if not settings:
        return []
    times = pd.concat([runs["started_at"] for runs in settings]).sort_values()
    starts = times[times.diff() > SESSION_GAP].to_numpy()
    numbers = [np.searchsorted(starts, runs["started_at"], side="right") for runs in settings]
    deviations = []
    for number in range(len(starts)):
        both = [
            _difference(runs[at == number], runs[at == number + 1])
            for runs, at in zip(settings, numbers, strict=True)
        ]
        known = [*filter(None, both)]
        if len(known) > 1:
            shifts, squares = np.array(known).T
            spread = shifts.var(ddof=1)
            common = max(shifts.mean() ** 2 - spread / len(shifts), 0.0) / 2
            each = max(spread - squares.mean(), 0.0) / 2
            deviations.append((math.sqrt(common), math.sqrt(each)))
    return deviations


def _difference(first: pd.DataFrame, second: pd.DataFrame) -> tuple[float, float] | None:
    """Return by how much a setting differs between two sessions, and its squared error."""
    both = {*first["prompt"]} & {*second["prompt"]}
    if not both:
        return None
    parts = [part[part["prompt"].isin(both)] for part in (first, second)]
    before, after = map(mean_speedup, parts)
    if not (before.repeated and after.repeated):
        # Prompts, each in a block of its own, differ between sessions as blocks do.
        of_prompts = [np.log(part["speedup"]).groupby(part["prompt"]).mean() for part in parts]
        before, after = Mean(0.0, 0.0, 1), block_mean((of_prompts[1] - of_prompts[0]).to_numpy())
    square = float(before.error**2 + after.error**2)
    return (float(after.log - before.log), square) if math.isfinite(square) else None
