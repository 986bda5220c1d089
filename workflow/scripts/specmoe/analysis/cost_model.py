"""What a round of speculation costs, as a sum of measured parts, and what follows from them.

The unit is the *step*: the time that the target alone takes for one token. A round drafts g tokens
and verifies them in one pass of width g + 1. On a target that cannot take back a part of a pass
(see `server_log`) a round that accepts a < g tokens is followed by a replay, a pass of width
a + 2 that gives one more token. A run of N timed tokens then takes, in steps,

    drafted * c(gamma) + sum of v(width) over rounds and replays + replays * r + single steps

- c(gamma): the draft's time for one drafted token;
- v(b): one pass of width b, with what the server does once a round, such as saving the state of a
  hybrid target; v(1) = 1;
- r: what a replay takes beyond v of its width: restoring the state, less saving it;

and its speedup is N over that. Per round this is the usual

    (1 + mean accepted) / (gamma * c + v(gamma + 1) + replay share),

with the token of a replay counted above, its cost below.

All three are fitted on runs of imposed acceptance: c on all of them, v on those that accepted
everything (they have no replays), r on those that accepted nothing. v and c are linear between the
measured values; beyond them v continues at the slope of its last piece and c stays constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, nan, sqrt
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from specmoe.analysis.intervals import NO_INTERVAL, Interval, student_quantile

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunCounts:
    """What a run did, without its timing; `tokens` are those that its decode time spans."""

    gamma: int
    tokens: int
    rounds: int
    drafted: int
    accepted: int
    replays: int = 0
    replays_rejected: int = 0

    @classmethod
    def of(cls, row: Any) -> Self:
        """Return the counts of a row of `schema.read_runs`'s frame, of protocol `paired`."""
        names = ("rounds", "drafted", "accepted", "replays", "replays_rejected")
        return cls(
            int(row["gamma"]), int(row["generated"]) - 1, *(int(row[name]) for name in names)
        )

    @property
    def single_steps(self) -> int:
        """Return how many passes drafted nothing, such as the one for a run's last token."""
        given = self.accepted + self.rounds + self.replays - self.replays_rejected
        return self.tokens - given

    def widths(self) -> Array:
        """Return the width of every round's pass.

        Rounds draft gamma tokens, but not beyond the end of the run. If all tokens are accepted,
        only the last round is shorter. Otherwise every round advances by about the same number of
        tokens, so the shortfall of the last rounds grows in equal steps; the total shortfall gives
        their number. That is exact where every round yields the same.
        """
        lacking = self.gamma * self.rounds - self.drafted
        advance = self.tokens / self.rounds
        # The smallest n with advance * (1 + ... + n) >= lacking.
        short = ceil((sqrt(1 + 8 * lacking / advance) - 1) / 2)
        if self.accepted == self.drafted:
            short = min(short, 1)
        widths = np.full(self.rounds, self.gamma + 1.0)
        if short:
            places = np.arange(1, short + 1)[: self.rounds]
            widths[-len(places) :] -= places * (lacking / places.sum())
        return widths.clip(min=1)

    def replay_width(self) -> float:
        """Return the mean width of the replays: the last token, the accepted, and the corrected.

        The rounds without a replay are assumed to be the shortest, which are likeliest to have
        every token accepted.
        """
        partly = self.replays - self.replays_rejected
        if not partly:
            return 2.0
        wholly = float(np.sort(self.widths() - 1)[: self.rounds - partly].sum())
        return 2 + max(self.accepted - wholly, 0) / partly


def counts_are_known(runs: pd.DataFrame) -> "pd.Series[bool]":
    """Return which runs the model applies to: those whose rounds and replays were counted."""
    names = ["generated", "rounds", "drafted", "accepted", "replays", "replays_rejected"]
    return runs[names].notna().all(axis=1) & runs["rounds"].fillna(0).gt(0)


@dataclass(frozen=True)
class CostModel:
    """The costs of one target with one draft, in steps.

    `costs` has c at each of `gammas`, then v at each of `widths` (the first is 1), then r.
    `without` has the same as fitted without each repeat in turn, shape (repeats, costs); it has no
    rows where a kind of run has a single repeat. `replay_costs` is r by itself at each of `gammas`
    (first row), and without each repeat; NaN where there are no replays. `degrees` of freedom are
    the fewest repeats of any kind of run, less one.
    """

    gammas: tuple[int, ...]
    widths: tuple[int, ...]
    costs: Array
    without: Array
    replay_costs: Array
    replays: bool
    degrees: int
    confidence: float

    @property
    def draft_costs(self) -> slice:
        """Where in `costs` the drafted tokens' are."""
        return slice(0, len(self.gammas))

    @property
    def pass_costs(self) -> slice:
        """Where in `costs` those of passes are."""
        return slice(len(self.gammas), -1)

    def reach(self, without: Array) -> Array:
        """Return half the width of the intervals of values, given those without each repeat.

        `without` has the repeats along its last axis. The standard error is the jackknife's (B.
        Efron, R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11). Where values
        are linear in what each repeat took, it is that of a mean over repeats, and Student's t is
        exact. NaN with a single repeat.
        """
        count = without.shape[-1]
        if count < 2:
            return np.full(without.shape[:-1], nan)
        error = np.sqrt((count - 1) * without.var(axis=-1))
        reach: Array = student_quantile(self.degrees, self.confidence) * error
        return reach

    def interval(self, value: float, without: Array) -> Interval:
        """Return the interval of a value, given it without each repeat."""
        reach = float(self.reach(without))
        return NO_INTERVAL if np.isnan(reach) else Interval(value - reach, value + reach)

    def interval_of_ratio(self, value: float, without: Array) -> Interval:
        """Return the interval of a cost or speedup, which is above zero, by its logarithm.

        NaN where noise makes the value zero or less without some repeat.
        """
        if value <= 0 or (without <= 0).any():
            return NO_INTERVAL
        low, high = np.exp(self.interval(float(np.log(value)), np.log(without)))
        return Interval(float(low), float(high))

    def draft_cost(self, gamma: int) -> float:
        """Return c(gamma), in steps a token."""
        return float(self._drafting(gamma, 1) @ self.costs[self.draft_costs])

    def pass_cost(self, width: float) -> float:
        """Return v(width), in steps."""
        return float(shares([width], self.widths) @ self.costs[self.pass_costs])

    def work(self, counts: RunCounts) -> Array:
        """Return how much of each of `costs` a run has; its time in steps is `work @ costs`."""
        passes = shares(counts.widths(), self.widths)
        passes += counts.replays * shares([counts.replay_width()], self.widths)
        passes[0] += counts.single_steps
        return self._joined(self._drafting(counts.gamma, counts.drafted), passes, counts.replays)

    def cycle(self, gamma: int, chance: float) -> tuple[float, float, Array]:
        """Return a round's expected accepted tokens, all tokens it yields, and its work.

        Every drafted token whose predecessors were accepted is accepted by the same `chance`
        (Leviathan et al. 2023); the work holds the replay that follows, if one does.
        """
        # The chances of accepting exactly 0, 1, ... of them.
        partly: Array = np.power(chance, np.arange(gamma, dtype=float)) * (1 - chance)
        accepted = float(partly @ np.arange(gamma) + gamma * chance**gamma)
        passes = shares([gamma + 1], self.widths)
        replays = float(partly.sum()) if self.replays else 0.0
        if self.replays:
            passes = passes + shares(np.arange(2, gamma + 2, dtype=float), self.widths, partly)
        work = self._joined(self._drafting(gamma, gamma), passes, replays)
        return accepted, 1 + accepted + replays, work

    def extrapolates(self, counts: RunCounts) -> bool:
        """Return whether some pass of a run is wider than the widest that was measured."""
        return bool(counts.widths().max() > self.widths[-1])

    def _drafting(self, gamma: int, tokens: int) -> Array:
        within = min(max(gamma, self.gammas[0]), self.gammas[-1])
        return tokens * shares([within], self.gammas)

    def _joined(self, drafting: Array, passes: Array, replays: float) -> Array:
        return np.concatenate([drafting, passes, [replays]])


def shares(
    points: Sequence[float] | Array, knots: Sequence[int], weights: Array | None = None
) -> Array:
    """Return the weights of the values at `knots` in a weighted sum of values at `points`.

    Values are linear between knots, and continue beyond the last at the slope of the last piece.
    `weights` are those of the points (default: 1 each).
    """
    at, places = np.asarray(points, float), np.asarray(knots, float)
    weights = np.ones(len(at)) if weights is None else weights
    if len(places) == 1:
        return np.array([weights.sum()])
    left = np.clip(np.searchsorted(places, at, side="right") - 1, 0, len(places) - 2)
    part = (at - places[left]) / (places[left + 1] - places[left])
    total = np.zeros(len(places))
    np.add.at(total, left, weights * (1 - part))
    np.add.at(total, left + 1, weights * part)
    return total
