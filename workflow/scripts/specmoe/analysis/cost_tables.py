"""The tables of the cost model: what passes cost, what settings should gain, where SD pays."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.cost_fit import Timed, fit, timed_steps
from specmoe.analysis.cost_model import Array, CostModel, counts_are_known, counts_of
from specmoe.analysis.intervals import Estimate, block_mean, mean_speedup
from specmoe.analysis.summaries import by_group, with_ends
from specmoe.config.block import MEASURED_BY
from specmoe.config.methods import BY_TYPE, Method
from specmoe.config.schema import Statistics

PAIR = [*MEASURED_BY, "target", "draft"]
_SETTING = [*PAIR, "suite", "gamma", "forced_acceptance"]
WHOLE = "all"  # instead of a suite, where a line is of all of them

# Chances of acceptance at which to look for break-even. They are denser towards 1, where the
# acceptance rate of long drafts changes fastest.
_CHANCES = 1 - np.linspace(1, 0, 401) ** 2


class Fitted(NamedTuple):
    """The costs of a target with a draft model; `identity` has the values of PAIR by name.

    `widest` is the widest round of which a run fitted on holds two: a shorter run is mostly its
    last round, which is cut. `timed` are the target's and the draft model's passes.
    """

    identity: dict[str, str]
    model: CostModel
    widest: int
    timed: Timed


def fit_pairs(
    compared: pd.DataFrame, pass_times: pd.DataFrame, statistics: Statistics
) -> list[Fitted]:
    """Return the costs of every target and draft with timed passes and runs of forced acceptance.

    `compared` are rows of `with_speedups` of one temperature, `pass_times` is `pass_times.parquet`.
    """
    forced = compared[compared["forced_acceptance"].notna() & compared["paired"]]
    forced = forced.assign(step_ms=1000 / forced["baseline_tokens_per_second"])
    fitted = []
    for key, members in forced.groupby(PAIR, sort=False):
        named = dict(zip(PAIR, map(str, key), strict=True))
        own_times = pass_times[pass_times["engine"] == named["engine"]]
        first = members.iloc[0]
        draft = first["draft_model"] if BY_TYPE[first["method"]] == Method.DRAFT else None
        timed = timed_steps(own_times, named["target"], draft)
        if timed and (model := fit(members, statistics, timed)):
            longest = members["generated"].max() - 1
            widest = max((one for one in model.knots["overhead"] if 2 * one <= longest), default=1)
            fitted.append(Fitted(named, model, widest, timed))
    return fitted


def verification(fitted: Iterable[Fitted], statistics: Statistics) -> pd.DataFrame:
    """Return the costs of every pass measured, a row for each target, draft and n_tokens.

    Columns:

    - protocol, engine, target, draft, n_tokens (of a pass).
    - steps (v) as timed, with its ends, which are null of one token, the unit.
    - gamma, whose rounds have so many tokens, and of such a round, each in steps with its interval,
      as fitted: draft_steps (c, per drafted token), round_steps (v + d + o: all of it but
      drafting), catchup_steps (d; null without a draft model), overhead_steps (o), replay_steps (r;
      one for all gammas, null where the target has no replays).
    """
    rows = []
    for pair in fitted:
        logs = np.log(pair.timed["pass"])
        for n_tokens in pair.model.knots["pass"]:
            gamma = n_tokens - 1
            mean = block_mean(logs[n_tokens].to_numpy(float)) if gamma else None
            row: dict[str, Any] = pair.identity | {"n_tokens": n_tokens, "steps": mean}
            rows.append(row | {"gamma": gamma} | _round_costs(pair.model, gamma))
    return with_ends(pd.DataFrame(rows), PAIR, statistics, "steps").fillna({"steps": 1.0})


def _round_costs(model: CostModel, gamma: int) -> dict[str, float]:
    """Return what a round of γ drafted tokens costs; all null of a γ that was not fitted on."""
    kinds = ("round", "catchup", "overhead", "replay")
    parts = {kind: model.cost(model.weights(kind, gamma + 1)) for kind in kinds}
    drafting = model.weights("draft", gamma)
    parts = {"draft": model.ratio(float(drafting @ model.costs), model.without @ drafting)} | parts
    known = {"catchup": model.knots["catchup"], "replay": model.replays}
    steps: dict[str, float] = {}
    for kind, part in parts.items():
        fitted = gamma in model.knots["draft"] and known.get(kind, True)
        steps |= (part if fitted else Estimate(np.nan)).columns(f"{kind}_steps")
    return steps


def fitted_costs(fitted: Iterable[Fitted]) -> pd.DataFrame:
    """Return the costs of the model itself, a row for each pair, cost, and fit without a repeat.

    Columns: protocol, engine, target, draft; kind, see `CostModel.knots`; at: γ of c, the width of
    v, d and o, 0 of r; without_repeat: without which repeat the costs are fitted, from 1 (0: with
    all of them); steps: the cost; replays, quantile: see `CostModel`; widest: see `Fitted`.
    """
    rows = []
    for pair in fitted:
        model = pair.model
        places = [(kind, at) for kind, knots in model.knots.items() for at in knots]
        common = {"replays": model.replays, "quantile": model.quantile, "widest": pair.widest}
        rows += [
            pair.identity
            | {"kind": kind, "at": at, "without_repeat": repeat, "steps": float(steps)}
            | common
            for repeat, costs in enumerate([model.costs, *model.without])
            for (kind, at), steps in zip(places, costs, strict=True)
        ]
    return pd.DataFrame(rows)


def predictions(
    fitted: Iterable[Fitted], compared: pd.DataFrame, statistics: Statistics
) -> pd.DataFrame:
    """Return the speedup that the costs predict from every setting's counts, and the measured one.

    `compared` are rows of `with_speedups` of one temperature. A setting is a suite's target, draft,
    gamma and forced acceptance (null: none). The costs were fitted on 0 and 1, which have no row.
    Columns:

    - acceptance_rate (accepted / drafted), speedup with its interval over blocks.
    - predicted: the same mean of timed tokens / (work @ costs), with an interval from the repeats
      fitted on; ratio: predicted / speedup.
    - equation_1: the study's (1 - a^(g+1)) / ((1 - a) (c g + 1)), where a pass of any width costs
      one step, with a the acceptance rate as it counts it, accepted / drafted.
    - equation_2: its g / (g c + v(g + 1)), which counts g tokens a round, accepted or not.
    """
    unseen = ~compared["forced_acceptance"].isin([0, 1])
    compared = compared[unseen & counts_are_known(compared)]
    models = {tuple(pair.identity.values()): pair.model for pair in fitted}

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        model = models.get(tuple(map(str, members.iloc[0][PAIR])))
        if model is None:
            return
        counts = counts_of(members)
        gamma = counts[0].gamma
        tokens = np.array([one.tokens for one in counts])
        work = np.array([model.work(one) for one in counts])
        without = np.exp(np.log(tokens / (model.without @ work.T)).mean(axis=1))
        members = members.assign(predicted=tokens / (work @ model.costs))
        # Over blocks, as every speedup: a block may lack a pair that the others have.
        measured = mean_speedup(members).estimate(statistics.confidence)
        predicted = model.ratio(math.exp(mean_speedup(members, "predicted").log), without)
        rate = float(members["accepted"].sum() / members["drafted"].sum())
        drafting, passing = model.value("draft", gamma), model.value("pass", gamma + 1)
        yield {
            "acceptance_rate": rate,
            **measured.columns("speedup"),
            **predicted.columns("predicted"),
            "ratio": predicted.value / measured.value,
            "equation_1": float((rate ** np.arange(gamma + 1)).sum()) / (drafting * gamma + 1),
            "equation_2": gamma / (gamma * drafting + passing),
        }

    return by_group(compared, _SETTING, row)


def prediction_errors(predicted: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of the predictions, by suite, then over all settings of real acceptance.

    Columns: suite, forced (whether acceptance was), settings, median and worst (of |ratio - 1|),
    inside (the share of measured speedups in the predicted interval; null without intervals), and
    the median errors of the study's equations.
    """
    if predicted.empty:
        return pd.DataFrame()
    settings = predicted.assign(forced=predicted["forced_acceptance"].notna())
    real = settings[~settings["forced"]].assign(suite=WHOLE)
    tables = [by_group(some, ["suite", "forced"], _errors) for some in (settings, real)]
    return pd.concat(tables, ignore_index=True)


def _errors(settings: pd.DataFrame) -> Iterator[dict[str, Any]]:
    errors = (settings["ratio"] - 1).abs()
    known = settings.dropna(subset=["predicted_low", "predicted_high"])
    names = ["equation_1", "equation_2"]
    equation_errors = (settings[names].div(settings["speedup"], axis=0) - 1).abs().median()
    yield {
        "settings": len(settings),
        "median": float(errors.median()),
        "worst": float(errors.max()),
        "inside": known["speedup"].between(known["predicted_low"], known["predicted_high"]).mean(),
        **{name.replace("equation", "median"): float(equation_errors[name]) for name in names},
    }


def break_even(fitted: Iterable[Fitted], predicted: pd.DataFrame) -> pd.DataFrame:
    """Return where speculation pays: a row for each target, draft, gamma and measured setting.

    Every token of a round whose predecessors were accepted is assumed to be accepted by the same
    chance (Leviathan et al. 2023). Columns:

    - protocol, engine, target, draft, gamma: every gamma fitted on or in `predicted`.
    - at_100, at_0: speedup with all and with nothing accepted, with intervals.
    - break_even: the least acceptance rate (accepted / drafted) from which on the speedup is at
      least 1; 0 where it always is, null where even at_100 is below 1. Its interval has the
      rates at which the speedup's own interval includes 1; an end is null where no rate is.
    - extrapolated: whether a round's pass is wider than `Fitted.widest`. The speedups are those
      of long texts; a short one ends in a round that is cut, and gains less.
    - suite, forced_acceptance, acceptance_rate, speedup, speedup_low, speedup_high: the setting's,
      of `predicted`; null for a gamma without one.
    """
    settings = ["suite", "forced_acceptance", "acceptance_rate"]
    settings += ["speedup", "speedup_low", "speedup_high"]
    keys = [*PAIR, "gamma"]
    measured = predicted.reindex(columns=[*keys, *settings])
    rows = []
    for pair in fitted:
        own = measured[(measured[PAIR] == [*pair.identity.values()]).all(axis=1)]
        for gamma in sorted({*pair.model.knots["draft"], *map(int, own["gamma"])}):
            row = pair.identity | {"gamma": gamma, "extrapolated": gamma + 1 > pair.widest}
            rows.append(row | _ends(pair.model, gamma))
    frame = pd.DataFrame(rows)
    empty = frame.reindex(columns=settings)
    return empty if frame.empty else frame.merge(measured, how="left", on=keys)


def _ends(model: CostModel, gamma: int) -> dict[str, Any]:
    cycles = [model.expected(chance ** np.arange(1.0, gamma + 1)) for chance in _CHANCES]
    accepted, tokens, work = map(np.array, zip(*cycles, strict=True))
    rates = accepted / gamma
    curve = tokens / (work @ model.costs)
    reach = np.exp(model.reach(np.log(tokens[:, None] / (work @ model.without.T))))
    low, high = curve / reach, curve * reach
    # The lower the curve of speedups, the higher the rate from which on it pays.
    ends = [_crossing(rates, one) for one in (high, low) if not np.isnan(reach).any()]
    return {
        **Estimate(curve[0], low[0], high[0]).columns("at_0"),
        **Estimate(curve[-1], low[-1], high[-1]).columns("at_100"),
        **Estimate(_crossing(rates, curve), *ends).columns("break_even"),
    }


def _crossing(rates: Array, curve: Array) -> float:
    """Return the rate, linear between others, after the last speedup below 1; NaN if none is."""
    [below] = np.nonzero(curve < 1)
    if not len(below):
        return 0.0
    around = slice(below[-1], below[-1] + 2)
    return float(np.interp(1, curve[around], rates[around], right=np.nan))
