"""The tables of the cost model: what passes cost, what cells should gain, where SD pays."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.cost_fit import fit
from specmoe.analysis.cost_model import Array, CostModel, RunCounts, counts_are_known
from specmoe.analysis.intervals import NO_INTERVAL, interval_of_rate, interval_of_speedup
from specmoe.analysis.summaries import geometric_mean
from specmoe.config.block import WAY
from specmoe.config.schema import Statistics
from specmoe.models.sizes import Size

PAIR = [*WAY, "target", "draft"]
_CELL = [*PAIR, "suite", "gamma", "imposed_acceptance"]
WHOLE = "all"  # instead of a suite, where a line is of all of them

# Chances of acceptance at which to look for break-even. They are denser towards 1, where the
# acceptance rate of long drafts changes fastest.
_CHANCES = 1 - np.linspace(1, 0, 401) ** 2


class Fitted(NamedTuple):
    """The costs of a target with a draft; `key` are the values of PAIR.

    `step_ms` is the target's mean time for a token in the baselines of the runs fitted on, with its
    interval over blocks.
    """

    key: tuple[str, ...]
    model: CostModel
    step_ms: float
    step_ms_low: float
    step_ms_high: float

    @property
    def identity(self) -> dict[str, str]:
        """The values of PAIR by name."""
        return dict(zip(PAIR, self.key, strict=True))


def fit_pairs(compared: pd.DataFrame, runs: pd.DataFrame, settings: Statistics) -> list[Fitted]:
    """Return the costs of every target and draft with runs of imposed acceptance.

    `compared` are rows of `with_speedups` of one temperature, `runs` has their baselines.
    """
    imposed = compared[compared["imposed_acceptance"].notna() & compared["paired"]]
    imposed = imposed.assign(step_ms=1000 / imposed["baseline_tokens_per_second"])
    fitted = []
    for key, members in imposed.groupby(PAIR, sort=False):
        model = fit(members, settings)
        if model is not None:
            own = runs[runs["run"].isin(members["baseline"])]
            times = 1000 / own["tokens_per_second"].astype(float)
            low, high = interval_of_rate(times, own["block"], settings.confidence)
            fitted.append(Fitted(tuple(map(str, key)), model, float(times.mean()), low, high))
    return fitted


def verification(
    fitted: Iterable[Fitted],
    sizes: Mapping[str, Size],
    bandwidth: float | None,
    cache_bytes: float,
) -> pd.DataFrame:
    """Return v at every width measured, one row per target, draft and width; the roofline.

    Columns: protocol, engine, target, draft, width (tokens of a pass), steps (v) with steps_low and
    steps_high (null of width 1, which is the unit), ms with ms_low and ms_high, experts (distinct
    ones a pass visits in each layer, in expectation, if tokens choose theirs independently and
    evenly; null if dense), read_bytes (of weights, by one pass), bound_ms (read_bytes over
    `bandwidth`, in bytes a second), bound_share (bound_ms / ms: how much of the bound is reached),
    in_cache (whether the whole file may lie in a cache of `cache_bytes`, so that memory sets no
    bound).
    """
    rows = []
    for pair in fitted:
        size = sizes.get(pair.identity["target"])
        for place, width in enumerate(pair.model.widths, pair.model.pass_costs.start):
            steps = float(pair.model.costs[place])
            ends = pair.model.interval_of_ratio(steps, pair.model.without[:, place])
            ends_ms = (ends.low * pair.step_ms, ends.high * pair.step_ms)
            if width == 1:
                ends, ends_ms = NO_INTERVAL, (pair.step_ms_low, pair.step_ms_high)
            ms, read = steps * pair.step_ms, size.pass_bytes(width) if size else np.nan
            bound = 1000 * read / bandwidth if bandwidth else np.nan
            rows.append(
                pair.identity
                | {
                    "width": width,
                    **_with_ends("steps", steps, ends),
                    **_with_ends("ms", ms, ends_ms),
                    "experts": _distinct_experts(size, width),
                    "read_bytes": read,
                    "bound_ms": bound,
                    "bound_share": bound / ms,
                    "in_cache": bool(size and size.file_bytes <= cache_bytes),
                }
            )
    return pd.DataFrame(rows)


def _distinct_experts(size: Size | None, width: int) -> float:
    if size is None or not size.experts:
        return float("nan")
    visited: float = 1 - (1 - size.experts_used / size.experts) ** width
    return size.experts * visited


def round_costs(fitted: Iterable[Fitted]) -> pd.DataFrame:
    """Return c and r at every gamma, one row per target, draft and gamma.

    Columns: protocol, engine, target, draft, gamma, draft_steps (c, per drafted token) with its
    interval, draft_ms, replay_steps (r at this gamma alone) with its interval, replay_ms,
    replay_steps_all (r over all gammas, what predictions use). Those of replays are null where the
    target has none.
    """
    rows = []
    for pair in fitted:
        model = pair.model
        for place, gamma in enumerate(model.gammas):
            drafting, replay = float(model.costs[place]), float(model.replay_costs[0, place])
            drafting_ends = model.interval_of_ratio(drafting, model.without[:, place])
            replay_ends = model.interval(replay, model.replay_costs[1:, place])
            rows.append(
                pair.identity
                | {
                    "gamma": gamma,
                    **_with_ends("draft_steps", drafting, drafting_ends),
                    "draft_ms": drafting * pair.step_ms,
                    **_with_ends("replay_steps", replay, replay_ends),
                    "replay_ms": replay * pair.step_ms,
                    "replay_steps_all": float(model.costs[-1]) if model.replays else np.nan,
                }
            )
    return pd.DataFrame(rows)


def predictions(
    fitted: Iterable[Fitted], compared: pd.DataFrame, settings: Statistics
) -> pd.DataFrame:
    """Return the speedup that the costs predict from every cell's counts, and the measured one.

    `compared` are rows of `with_speedups` of one temperature. A cell is a suite's target, draft,
    gamma and imposed acceptance (null where none was imposed). Cells that the costs were fitted on
    (0 and 1) are left out. Added columns:

    - runs, blocks, acceptance_rate (accepted / drafted), speedup with its interval over blocks.
    - predicted: geometric mean over the runs of timed tokens / (work @ costs), with an interval
      from the repeats fitted on; ratio: predicted / speedup.
    - equation_1: the published study's (1 - a^(g+1)) / ((1 - a) (c g + 1)) with a the acceptance
      rate as it counts it; equation_2: its g / (g c + v(g + 1)), which counts g tokens a round,
      whether or not they were accepted.
    - extrapolated: whether a pass was wider than all measured ones.
    """
    unseen = ~compared["imposed_acceptance"].isin([0, 1])
    compared = compared[unseen & counts_are_known(compared)]
    by_pair = {pair.key: pair for pair in fitted}
    rows = []
    for cell, members in compared.groupby(_CELL, dropna=False):
        pair = by_pair.get(tuple(map(str, cell[: len(PAIR)])))
        if pair is not None:
            named = dict(zip(_CELL, cell, strict=True))
            rows.append(named | _predicted(members, pair.model, settings))
    return pd.DataFrame(rows)


def _predicted(members: pd.DataFrame, model: CostModel, settings: Statistics) -> dict[str, Any]:
    counts = [RunCounts.of(row) for row in members.to_dict("records")]
    gamma = counts[0].gamma
    tokens = np.array([one.tokens for one in counts])
    work = np.array([model.work(one) for one in counts])
    predicted = geometric_mean(tokens / (work @ model.costs))
    without = np.exp(np.log(tokens / (model.without @ work.T)).mean(axis=1))
    speedup = geometric_mean(members["speedup"].to_numpy(float))
    rate = float(members["accepted"].sum() / members["drafted"].sum())
    return {
        "runs": len(members),
        "blocks": members["block"].nunique(),
        "acceptance_rate": rate,
        **_with_ends("speedup", speedup, interval_of_speedup(members, settings.confidence)),
        **_with_ends("predicted", predicted, model.interval_of_ratio(predicted, without)),
        "ratio": predicted / speedup,
        "equation_1": classical_speedup(gamma, rate, model.draft_cost(gamma)),
        "equation_2": gamma / (gamma * model.draft_cost(gamma) + model.pass_cost(gamma + 1)),
        "extrapolated": any(model.extrapolates(one) for one in counts),
    }


def classical_speedup(gamma: int, acceptance: float, draft_cost: float) -> float:
    """Return the study's equation 1, where a pass of any width costs one step."""
    tokens = float((acceptance ** np.arange(gamma + 1)).sum())
    return tokens / (draft_cost * gamma + 1)


def prediction_errors(predicted: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of the predictions, by suite, then over all cells of real acceptance.

    Columns: suite, imposed (whether acceptance was), cells, median and worst (of |ratio - 1|), the
    cell of the worst (worst_suite, worst_target, worst_draft, worst_gamma, worst_ratio), and the
    median errors of the study's equations (median_1, median_2).
    """
    if predicted.empty:
        return pd.DataFrame()
    cells = predicted.assign(imposed=predicted["imposed_acceptance"].notna())
    rows = [
        _errors(str(suite), bool(imposed), members)
        for (suite, imposed), members in cells.groupby(["suite", "imposed"])
    ]
    real = cells[~cells["imposed"]]
    if not real.empty:
        rows.append(_errors(WHOLE, False, real))
    return pd.DataFrame(rows)


def _errors(suite: str, imposed: bool, cells: pd.DataFrame) -> dict[str, Any]:
    errors = (cells["ratio"] - 1).abs()
    worst = cells.iloc[int(errors.argmax())]
    of_equations = cells[["equation_1", "equation_2"]].div(cells["speedup"], axis=0)
    median_1, median_2 = (of_equations - 1).abs().median()
    return {
        "suite": suite,
        "imposed": imposed,
        "cells": len(cells),
        "median": float(errors.median()),
        "worst": float(errors.max()),
        **{f"worst_{key}": worst[key] for key in ("suite", "target", "draft", "gamma", "ratio")},
        "median_1": float(median_1),
        "median_2": float(median_2),
    }


def break_even(fitted: Iterable[Fitted], predicted: pd.DataFrame) -> pd.DataFrame:
    """Return where speculation pays, one row per target, draft, gamma and cell measured with them.

    Every token of a round is assumed to have the same chance, see `CostModel.cycle`. Columns:

    - protocol, engine, target, draft, gamma: every gamma fitted on or in `predicted`.
    - ceiling, floor: speedup with all and with nothing accepted, with intervals.
    - break_even: the least acceptance rate (accepted / drafted) from which on the speedup is at
      least 1; 0 where it always is, null where even the ceiling is below 1. Its interval has the
      rates at which the speedup's own interval includes 1; an end is null where no rate is.
    - extrapolated: whether a round's pass is wider than all measured ones.
    - suite, imposed_acceptance, acceptance_rate, speedup, speedup_low, speedup_high: the cell's, of
      `predicted`; null for a gamma without one.
    """
    rows = []
    for pair in fitted:
        own = _of_pair(predicted, pair)
        gammas = sorted({*pair.model.gammas, *(int(gamma) for gamma in own.get("gamma", []))})
        rows += [pair.identity | {"gamma": gamma} | _ends(pair.model, gamma) for gamma in gammas]
    frame = pd.DataFrame(rows)
    cells = ["suite", "imposed_acceptance", "acceptance_rate"]
    cells += ["speedup", "speedup_low", "speedup_high"]
    if frame.empty or predicted.empty:
        return frame.assign(**dict.fromkeys(cells, np.nan))
    keys = [*PAIR, "gamma"]
    return frame.merge(predicted[[*keys, *cells]], how="left", on=keys)


def _of_pair(predicted: pd.DataFrame, pair: Fitted) -> pd.DataFrame:
    if predicted.empty:
        return predicted
    return predicted[(predicted[PAIR] == list(pair.key)).all(axis=1)]


def _ends(model: CostModel, gamma: int) -> dict[str, Any]:
    cycles = [model.cycle(gamma, chance) for chance in _CHANCES]
    rates = np.array([accepted for accepted, _, _ in cycles]) / gamma
    tokens = np.array([yielded for _, yielded, _ in cycles])
    work = np.array([done for _, _, done in cycles])
    curve = tokens / (work @ model.costs)
    reach = np.exp(model.reach(np.log(tokens[:, None] / (work @ model.without.T))))
    low, high = curve / reach, curve * reach
    known = not np.isnan(reach).any()
    # The lower the curve of speedups, the higher the rate from which on it pays.
    point, least, most = _crossing(rates, np.column_stack([curve, high, low]))
    ends = (float(least), float(most)) if known else NO_INTERVAL
    values = {
        **_with_ends("floor", float(curve[0]), (float(low[0]), float(high[0]))),
        **_with_ends("ceiling", float(curve[-1]), (float(low[-1]), float(high[-1]))),
        **_with_ends("break_even", float(point), ends),
    }
    finite = {name: value if np.isfinite(value) else np.nan for name, value in values.items()}
    return finite | {"extrapolated": gamma + 1 > model.widths[-1]}


def _crossing(rates: Array, curves: Array) -> Array:
    """Return, for each column of speedups, the rate after its last one below 1; inf if that is 1.

    Linear between the rates.
    """
    below = curves < 1
    last = len(rates) - 1 - below[::-1].argmax(axis=0)
    after = np.minimum(last + 1, len(rates) - 1)
    column = np.arange(curves.shape[1])
    low, high = curves[last, column], curves[after, column]
    rise = np.where(after > last, high - low, 1.0)
    found = rates[last] + (1 - low) / rise * (rates[after] - rates[last])
    found = np.where(last == len(rates) - 1, np.inf, found)
    return np.where(below.any(axis=0), found, 0.0)


def _with_ends(name: str, value: float, interval: tuple[float, float]) -> dict[str, float]:
    """Return a value and the ends of its interval by column."""
    low, high = interval
    return {name: value, f"{name}_low": low, f"{name}_high": high}
