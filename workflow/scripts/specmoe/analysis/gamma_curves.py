"""Predicted speedup of every draft length, from one draft scoring and the costs of passes.

A draft model's scores of its targets' texts give the rounds of any setting (`audit.draft_rounds`),
the cost model what these take. A pair without runs of forced acceptance has the costs of its passes
that were timed by themselves: rounds take nothing beside them. How far that is from the truth is
estimated from the campaign's own settings of such pairs and from those of shipped campaigns.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import hypot, isnan, log
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.cost_fit import timed_costs, timed_parts
from specmoe.analysis.cost_model import CostModel
from specmoe.analysis.cost_tables import PAIR, Fitted
from specmoe.analysis.intervals import MANY, Estimate, geometric_mean, student_quantile
from specmoe.analysis.noise import prior
from specmoe.analysis.summaries import by_group, by_model, mean_ratios, with_ends
from specmoe.audit.draft_rounds import Counts, DraftScores, Played, ScoresKey, steps_from_agreement
from specmoe.config.block import MEASURED_BY, Protocol
from specmoe.config.schema import Statistics

_SETTING = [*MEASURED_BY, "suite", "target", "draft"]


class Pair(NamedTuple):
    """The scored outputs of a suite's runs with what drafts, and the costs of rounds."""

    # With their tokens, and the most tokens of a run.
    texts: Sequence[tuple[DraftScores | Played, int, int]]
    model: CostModel
    # How far the logarithm of speedup may be off, as a deviation; 0 where costs are fitted to runs.
    error: float
    # The same, by what is known of the noise of passes that were timed once.
    noise: float

    def play(self, gamma: int) -> list[list[Counts]]:
        """Return the steps of each text."""
        replays = self.model.replays
        return [steps_from_agreement(text, gamma, most, replays) for text, _, most in self.texts]

    def predict_speedup(self, gamma: int) -> dict[str, Any]:
        """Return the predicted speedup of γ over texts, which weigh alike, with its interval."""
        model, played = self.model, self.play(gamma)
        tokens = np.array([count - 1.0 for _, count, _ in self.texts])
        work = np.array([model.played(steps, gamma) for steps in played])
        speedups, without = model.speedups(tokens, work)
        reach = float(model.reach(np.log(without).mean(axis=1)))
        if self.error:
            # Single steps do not err.
            single = np.array([sum(not step.rounds for step in steps) for steps in played])
            share = float(1 - (single * speedups / tokens).mean())
            more = hypot(self.error, self.noise) * share
            more *= student_quantile(MANY, model.confidence)
            reach = hypot(0.0 if isnan(reach) else reach, more)
        return Estimate.of_ratio(geometric_mean(speedups), reach).columns("predicted")

    def drafted_share(self, gamma: int) -> float:
        """Return the share of the texts that γ drafts, see `summaries.is_idle`."""
        drafted = sum(step.drafted for step in chain(*self.play(gamma)))
        return drafted / sum(tokens for _, tokens, _ in self.texts)


def gamma_curves(
    compared: pd.DataFrame,
    runs: pd.DataFrame,
    scores: Mapping[ScoresKey, DraftScores],
    fitted: Sequence[Fitted],
    pass_times: pd.DataFrame,
    statistics: Statistics,
) -> pd.DataFrame:
    """Return the table `gamma_curves`.

    `compared` are rows of `with_speedups` at the draft models' own acceptance, `runs` has their
    baselines.
    """
    costs = {tuple(pair.identity.values()): pair.model for pair in fitted}
    compared = compared[by_model(compared) & (compared["p_min"].fillna(0) == 0)]
    compared = compared[(compared["protocol"] == Protocol.PAIRED) & (compared["temperature"] == 0)]
    baselines = runs.set_index("run")

    def rows(members: pd.DataFrame, error: float | None = None) -> Iterator[dict[str, Any]]:
        replays = bool(members["replays"].fillna(0).gt(0).any())
        first, alone = members.iloc[0], baselines.loc[members["baseline"].unique()]
        given = alone, str(first["draft_model"]), scores, pass_times, statistics
        pair = scored_pair(*given, replays=replays, known=costs.get(tuple(first[PAIR])))
        if pair is None:
            return
        if pair.error and error is not None:
            pair = pair._replace(error=error)
        # Of wider rounds than were timed nothing is predicted.
        widest = min(at[-1] for kind in ("pass", "catchup") if (at := pair.model.knots[kind]))
        for gamma in range(1, widest):
            measured = mean_ratios(members[members["gamma"] == gamma], "speedup")
            yield {"gamma": gamma, "timed": pair.error > 0} | pair.predict_speedup(gamma) | measured

    first = by_group(compared, _SETTING, rows)
    if first.empty:
        return first
    first = with_ends(first, ["suite", "target"], statistics, "speedup")
    error = prior("predictions").shrunk(squared_errors(first[first["timed"]])).value
    curves = by_group(compared, _SETTING, lambda members: rows(members, error))
    return with_ends(curves, ["suite", "target"], statistics, "speedup")


def squared_errors(curves: pd.DataFrame) -> list[float]:
    """Return the mean square of each pair's predictions over what was measured, as logarithms.

    Those of one pair err alike, so they are one draw.
    """
    off = (curves["predicted"] / curves["speedup"]).astype(float).map(log) ** 2
    pairs = off.groupby([curves[name] for name in _SETTING], dropna=False)
    return [float(square) for square in pairs.mean().dropna()]


def scored_pair(
    baselines: pd.DataFrame,
    scored_by: str,
    scores: Mapping[ScoresKey, DraftScores | Played],
    pass_times: pd.DataFrame,
    statistics: Statistics,
    *,
    replays: bool,
    known: CostModel | None = None,
) -> Pair | None:
    """Return a target and its draft, from the target's baselines; None if too little is known.

    Each text counts once, as far as the draft model has scored it; `replays`: whether the target
    replays rounds; `known`: costs that were fitted to runs.
    """
    texts: dict[tuple[str, tuple[int, ...]], tuple[DraftScores | Played, int, int]] = {}
    for run in baselines.to_dict("records"):
        tokens = tuple(map(int, run["tokens"]))
        scored = scores.get((run["engine"], run["target"], scored_by, run["prompt"], tokens))
        if scored and len(tokens) > 1:
            texts[run["prompt"], tokens] = scored, len(tokens), int(run["n_predict"])
    if not texts:
        return None
    if known:
        return Pair([*texts.values()], known, 0.0, 0.0)
    # N-grams were played: no model computes them.
    draft = scored_by if isinstance(next(iter(texts.values()))[0], DraftScores) else None
    engine, target = baselines.iloc[0][["engine", "target"]]
    times = pass_times[pass_times["engine"] == engine]
    token_ms = 1000 / geometric_mean(baselines["tokens_per_second"])
    timed = timed_parts(times, target, draft, token_ms, replays=replays)
    if not timed or not (model := timed_costs(timed, statistics, replays=replays)):
        return None
    if model.degrees:
        return Pair([*texts.values()], model, prior("predictions").value, 0.0)
    # Of passes over several tokens, in those over one: the noise of both. And how far the machine's
    # speed was another one when the server wrote the texts.
    errors = times.groupby("model")["error"].mean().fillna(0.0)
    moved = log(token_ms / model.costs[0])
    noise = hypot(errors[target], errors[target], errors[draft] if draft else 0.0, moved)
    return Pair([*texts.values()], model, prior("predictions", "once").value, noise)
