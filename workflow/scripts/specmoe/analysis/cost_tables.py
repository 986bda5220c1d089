"""The tables of the cost model: what passes cost, what settings should gain, where SD pays."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.cost_fit import Timed, fit, timed_parts
from specmoe.analysis.cost_model import Array, CostModel, counts_are_known, counts_of
from specmoe.analysis.intervals import Estimate, block_mean, geometric_mean, mean_speedup
from specmoe.analysis.summaries import by_group, with_ends
from specmoe.config.block import MEASURED_BY
from specmoe.config.methods import BY_TYPE, Method, round_parts
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
    method: Method
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
        method = BY_TYPE[first["method"]]
        draft = first["draft_model"] if method == Method.DRAFT else None
        replays = bool(members["replays"].gt(0).any())
        given = own_times, named["target"], draft, geometric_mean(members["step_ms"])
        timed = timed_parts(*given, replays=replays)
        if timed and (model := fit(members, statistics, timed)):
            longest = members["generated"].max() - 1
            widest = max((at for at in model.knots["overhead"] if 2 * at <= longest), default=1)
            fitted.append(Fitted(named, method, model, widest, timed))
    return fitted


def verification(fitted: Iterable[Fitted], statistics: Statistics) -> pd.DataFrame:
    """Return the table `verification`: the costs of every pass measured."""
    rows = []
    for pair in fitted:
        token_ms = pair.model.costs[0]
        copied = {"saved_ms": pair.timed.saved, "restored_ms": pair.timed.restored}
        for n_tokens in pair.model.knots["pass"]:
            mean = block_mean(np.log(pair.timed.passes[n_tokens]).to_numpy(float))
            row: dict[str, Any] = pair.identity | {"n_tokens": n_tokens, "token_ms": token_ms}
            row |= {"pass_ms": mean, "of_token": mean._replace(log=mean.log - math.log(token_ms))}
            row |= {name: float(ms.mean()) or np.nan for name, ms in copied.items()}
            row["parts"] = ", ".join(round_parts(pair.method, replays=pair.model.replays))
            gamma = n_tokens - 1
            rows.append(row | {"gamma": gamma} | _round_costs(pair.model, gamma))
    return with_ends(pd.DataFrame(rows), PAIR, statistics, "pass_ms", "of_token")


def _round_costs(model: CostModel, gamma: int) -> dict[str, float]:
    """Return what a round of γ drafted tokens costs; null where that was not measured."""
    places = {"draft": gamma} | dict.fromkeys(("round", "catchup", "overhead", "replay"), gamma + 1)
    known = {"draft": gamma in model.knots["draft"], "catchup": model.knots["catchup"]}
    known |= {"replay": model.replays}
    ms: dict[str, float] = {}
    for kind, at in places.items():
        fitted = known.get(kind, True)
        fitted = fitted and (kind == "draft" or gamma + 1 in model.knots["overhead"])
        part = model.cost(kind, at) if fitted else Estimate(np.nan)
        ms |= part.columns(f"{kind}_ms")
    return ms


def fitted_costs(fitted: Iterable[Fitted]) -> pd.DataFrame:
    """Return the table `fitted_costs`: the costs of the model itself, and without each repeat."""
    rows = []
    for pair in fitted:
        model = pair.model
        places = [(kind, at) for kind, knots in model.knots.items() for at in knots]
        rows += [
            pair.identity
            | {"kind": kind, "at": at, "without_repeat": repeat, "ms": float(ms)}
            | {"replays": model.replays, "quantile": model.quantile, "widest": pair.widest}
            for repeat, costs in enumerate([model.costs, *model.without])
            for (kind, at), ms in zip(places, costs, strict=True)
        ]
    return pd.DataFrame(rows)


def predictions(
    fitted: Iterable[Fitted], compared: pd.DataFrame, statistics: Statistics
) -> pd.DataFrame:
    """Return the table `predictions`: speedups from every setting's counts, and the measured ones.

    `compared` are rows of `with_speedups` of one temperature. A setting is a suite's target, draft,
    gamma and forced acceptance.
    """
    unseen = ~compared["forced_acceptance"].isin([0, 1])
    compared = compared[unseen & counts_are_known(compared)]
    models = {tuple(pair.identity.values()): pair.model for pair in fitted}

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        model = models.get(tuple(map(str, members.iloc[0][PAIR])))
        if model is None:
            return
        counts = counts_of(members)
        gamma = int(members["gamma"].iloc[0])
        tokens = np.array([run.tokens for run in counts])
        speedups, without = model.speedups(tokens, np.array([model.work(run) for run in counts]))
        members = members.assign(predicted=speedups)
        # Over blocks, as every speedup: a block may lack a pair that the others have.
        measured = mean_speedup(members).estimate(statistics.confidence)
        mean = math.exp(mean_speedup(members, "predicted").log)
        predicted = Estimate.of_ratio(mean, float(model.reach(np.log(without).mean(axis=1))))
        rate = float(members["accepted"].sum() / members["drafted"].sum())
        places = ("draft", gamma), ("pass", gamma + 1)
        drafting, passing = (model.cost(*place).value / model.costs[0] for place in places)
        yield {
            "acceptance_rate": rate,
            **measured.columns("speedup"),
            **predicted.columns("predicted"),
            "ratio": predicted.value / measured.value,
            "equation_1": float((rate ** np.arange(gamma + 1)).sum()) / (drafting * gamma + 1),
            "equation_2": gamma / (gamma * drafting + passing),
        }

    return by_group(compared, _SETTING, row)


def prediction_errors(predicted: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """Return the table `prediction_errors` of the tables `predictions` and `gamma_curves`."""
    frames = []
    if not predicted.empty:
        settings = predicted.assign(basis="runs", forced=predicted["forced_acceptance"].notna())
        frames = [settings, settings[~settings["forced"]].assign(suite=WHOLE)]
    if not curves.empty:
        rows = curves[curves["speedup"].notna() & curves["timed"].astype(bool)]
        rows = rows.assign(basis="passes", forced=False, suite=WHOLE)
        frames.append(rows.assign(ratio=rows["predicted"] / rows["speedup"]))
    tables = [by_group(some, ["basis", "suite", "forced"], _errors) for some in frames if len(some)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _errors(settings: pd.DataFrame) -> Iterator[dict[str, Any]]:
    errors = (settings["ratio"] - 1).abs()
    known = settings.dropna(subset=["predicted_low", "predicted_high"])
    equations = settings.reindex(columns=["equation_1", "equation_2"])
    equation_errors = (equations.div(settings["speedup"], axis=0) - 1).abs().median()
    yield {
        "settings": len(settings),
        "median": float(errors.median()),
        "worst": float(errors.max()),
        "bias": math.expm1(np.log(settings["ratio"].astype(float)).mean()),
        "inside": known["speedup"].between(known["predicted_low"], known["predicted_high"]).mean(),
        **{f"median_{number}": float(equation_errors[f"equation_{number}"]) for number in (1, 2)},
    }


def break_even(fitted: Iterable[Fitted], predicted: pd.DataFrame) -> pd.DataFrame:
    """Return the table `break_even`, with the settings of the table `predictions`."""
    settings = ["suite", "forced_acceptance", "acceptance_rate"]
    settings += ["speedup", "speedup_low", "speedup_high"]
    keys = [*PAIR, "gamma"]
    measured = predicted.reindex(columns=[*keys, *settings])
    rows = []
    for pair in fitted:
        of_pair = measured[(measured[PAIR] == [*pair.identity.values()]).all(axis=1)]
        for gamma in sorted({*pair.model.knots["draft"], *map(int, of_pair["gamma"])}):
            row = pair.identity | {"gamma": gamma, "extrapolated": gamma + 1 > pair.widest}
            rows.append(row | _ends(pair.model, gamma))
    frame = pd.DataFrame(rows)
    empty = frame.reindex(columns=settings)
    return empty if frame.empty else frame.merge(measured, how="left", on=keys)


def _ends(model: CostModel, gamma: int) -> dict[str, Any]:
    cycles = [model.expected(chance ** np.arange(1.0, gamma + 1)) for chance in _CHANCES]
    accepted, tokens, work = map(np.array, zip(*cycles, strict=True))
    rates = accepted / gamma
    curve, without = model.speedups(tokens, work)
    reach = np.exp(model.reach(np.log(without.T)))
    low, high = curve / reach, curve * reach
    # The lower the curve of speedups, the higher the rate from which on it pays.
    ends = [_crossing(rates, limit) for limit in (high, low) if not np.isnan(reach).any()]
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
