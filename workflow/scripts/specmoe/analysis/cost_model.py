"""The cost of a round of speculation, as a sum of measured parts, and what follows from it.

A round drafts g tokens and verifies them in one pass of width g + 1. On a target that cannot take
back a part of a pass (see `engine.responses`) a round that accepts a < g tokens is followed by a
replay, a pass of width a + 2 that gives one more token. A run of N timed tokens then takes, in
milliseconds,

    drafted * c(gamma)
    + sum of v(n) + d(n) over rounds and replays
    + sum of o(n) over rounds + replays * r + single steps * t

- t: the baseline's time for a token;
- c(gamma): the draft model's time for one drafted token;
- v(b): one pass of the target over b tokens, which may fall with b: kernels change with the width;
- d(b): the draft model reads every batch of a round or replay again (`common_speculative_process`
  in llama.cpp), which the engine counts neither as drafting nor as verifying;
- o(b): what else a round of that width takes, see `config.methods.round_parts`;
- r: what a replay takes beyond its pass and its re-reading: restoring the state;

and its speedup is N t over that. Per round this is the usual

    (1 + mean accepted) t / (gamma * c + v(gamma + 1) + d(gamma + 1) + o(gamma + 1) + replay share),

with the token of a replay counted above, its cost below.

Passes are timed by themselves, which gives v and d; o and r are what the runs of forced acceptance
take beyond them, errors of all that was subtracted included. Costs are linear between the measured
widths, and constant beyond them; nothing is predicted of wider passes than were timed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from specmoe.analysis.intervals import Estimate, student_quantile
from specmoe.audit.draft_rounds import Counts

Array = npt.NDArray[Any]
KINDS = ("token", "draft", "pass", "catchup", "overhead", "replay")
"""The kinds of cost: t, c, v, d, o and r."""
# A round that is not drafted, and a batch that is read again.
_SUMS = {"round": ("pass", "catchup", "overhead"), "batch": ("pass", "catchup")}


class RunCounts(NamedTuple):
    """What a run did, without its timing.

    `tokens` are those that its decode time spans; `drafted` and `accepted` have how many rounds
    drafted, and accepted, 0, 1, 2, ... tokens, up to γ.
    """

    tokens: int
    drafted: Array
    accepted: Array
    replays: int = 0
    replays_rejected: int = 0

    @property
    def single_steps(self) -> int:
        """Return how many passes drafted nothing, such as the one for a run's last token."""
        yielded = total(self.accepted) + self.drafted.sum() + self.replays - self.replays_rejected
        # Where a text ends within a round, tokens were accepted that it does not have.
        return max(self.tokens - int(yielded), 0)

    @property
    def replayed(self) -> Array:
        """Return how many replays followed rounds that accepted 0, 1, 2, ... tokens, but not γ.

        A short draft of which all was accepted has none; it counts as the others of its length.
        """
        partly: Array = self.accepted[:-1]
        return np.asarray(partly * (self.replays / max(partly.sum(), 1)))


def total(lengths: Array) -> float:
    """Return the tokens of so many rounds of 0, 1, 2, ... tokens."""
    return float(lengths @ np.arange(len(lengths)))


_COUNTED = ["generated", "drafted_lengths", "accepted_lengths", "replays", "replays_rejected"]


def counts_of(runs: pd.DataFrame) -> list[RunCounts]:
    """Return the counts of rows of `schema.read_runs`'s frame, of protocol `paired`."""
    return [
        RunCounts(int(generated) - 1, np.array(drafted, float), np.array(accepted, float), *replays)
        for generated, drafted, accepted, *replays in runs[_COUNTED].itertuples(index=False)
    ]


def counts_are_known(runs: pd.DataFrame) -> "pd.Series[bool]":
    """Return which runs the model applies to: those whose rounds and replays were counted."""
    return runs[_COUNTED].notna().all(axis=1) & runs["rounds"].fillna(0).gt(0)


@dataclass(frozen=True)
class CostModel:
    """The costs of one target with one draft, in ms.

    `knots` has the γ or widths at which each of `KINDS` is known: t at 1; c of γ; v; d, none
    without a draft model; o; and r at 0. `costs` has them in this order, and `without` as fitted
    without each repeat in turn, shape (repeats, costs); it has no rows where a kind of run has a
    single repeat. `degrees` of freedom are the fewest repeats of any kind of run, less one.
    """

    knots: Mapping[str, tuple[int, ...]]
    costs: Array
    without: Array
    replays: bool
    degrees: int
    confidence: float

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
        return np.asarray(self.quantile * error)

    @property
    def quantile(self) -> float:
        """How many standard errors an interval reaches: Student's t; NaN with a single repeat."""
        return float(student_quantile(self.degrees, self.confidence))

    def cost(self, kind: str, at: float) -> Estimate:
        """Return the cost that `weights` give, in ms; a residual may be below zero."""
        parts = self.weights(kind, at)
        value, reach = float(parts @ self.costs), float(self.reach(self.without @ parts))
        return Estimate(value, value - reach, value + reach)

    def speedups(self, tokens: Any, work: Array) -> tuple[Array, Array]:
        """Return the speedups of so many tokens by their work, and those without each repeat.

        Shapes: (runs,), (runs, costs); (runs,), (repeats, runs).
        """
        value = tokens * self.costs[0] / (work @ self.costs)
        return value, tokens * self.without[:, :1] / (self.without @ work.T)

    def weights(self, kind: str, at: Array | float, times: Array | float = 1.0) -> Array:
        """Return the weights of `costs` that give one of its kinds, or a sum, at a γ or width.

        Of several γ or widths they give what all take, each so many `times`.
        """
        amounts = {part: np.zeros(len(knots)) for part, knots in self.knots.items()}
        for part in _SUMS.get(kind, (kind,)):
            amounts[part] = shares(np.atleast_1d(at), self.knots[part], times)
        return np.concatenate([*amounts.values()])

    def work(self, counts: RunCounts) -> Array:
        """Return a run's amount of each cost; its time in ms is `work @ costs`."""
        gamma = len(counts.drafted) - 1
        return self._work(gamma, counts.drafted, counts.replayed, counts.single_steps)

    def played(self, steps: Sequence[Counts], gamma: int) -> Array:
        """Return the same of rounds, and steps without one, that are known one by one."""
        rounds = [(step.drafted, step.accepted) for step in steps if step.rounds]
        drafted, held = np.array(rounds, int).reshape(-1, 2).T
        replayed = held[held < drafted] if self.replays else held[:0]
        lengths = np.bincount(drafted, minlength=gamma + 1)
        return self._work(gamma, lengths, np.bincount(replayed), len(steps) - len(rounds))

    def expected(self, held: Array) -> tuple[float, float, Array]:
        """Return a round's expected accepted tokens, all tokens it yields, and its work.

        `held` has the chances that its first 1, 2, ... drafted tokens are all accepted; the work
        holds the replay that follows, if one does.
        """
        gamma = len(held)
        # The chances of accepting exactly 0, 1, ... of them, but not all.
        partly: Array = -np.diff(held, prepend=1.0) * self.replays
        accepted, replays = float(held.sum()), float(partly.sum())
        return accepted, 1 + accepted + replays, self._work(gamma, np.eye(gamma + 1)[gamma], partly)

    def _work(self, gamma: int, drafted: Array, replayed: Array, single: int = 0) -> Array:
        """Return the amount of each cost in rounds and replays.

        `drafted`: how many rounds draft 0, 1, 2, ... tokens; `replayed`: how many replays follow
        rounds that accept 0, 1, 2, ... tokens; `single`: steps that draft nothing.
        """
        parts = self.weights("draft", gamma, total(drafted))
        parts += self.weights("round", np.arange(len(drafted)) + 1, drafted)
        parts += self.weights("batch", np.arange(len(replayed)) + 2, replayed)
        return parts + self.weights("replay", 0, replayed.sum()) + self.weights("token", 1, single)


def shares(
    points: Sequence[float] | Array, knots: Sequence[int], weights: Array | float = 1.0
) -> Array:
    """Return the weights of the values at `knots` in a weighted sum of values at `points`.

    Values are linear between knots, and constant beyond them. `weights` are those of the points, or
    of each.
    """
    at = np.asarray(points, float)
    parts = [np.interp(at, knots, unit) for unit in np.eye(len(knots))]
    return np.asarray(np.reshape(parts, (len(knots), at.size)) @ np.broadcast_to(weights, at.shape))
