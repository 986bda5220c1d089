"""The costs of a target and its draft, from runs of forced acceptance and timed passes."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.cost_model import Array, CostModel, counts_are_known, counts_of
from specmoe.config.block import Outputs
from specmoe.config.schema import Statistics

# Runs decide what rounds take, and passes timed by themselves what of that is the pass. With equal
# weights, noise in which a pass exceeds its round would make rounds too slow in the fit, and fewer
# predicted intervals would hold than they say.
_TIMED_WEIGHT = 0.1

Timed = dict[str, pd.DataFrame]
"""Passes that were timed by themselves, in steps of the target, by repeat and width: `pass` has the
target's (v), `catchup` its draft's (d)."""


def timed_steps(times: pd.DataFrame, target: str, draft: str | None) -> Timed | None:
    """Return the passes of a target and its draft that were timed with one engine.

    `times` are rows of `pass_times.parquet`. The step is the target's own pass of one token, timed
    beside the others. Without a draft model nothing counts as read again: what another method does
    with a batch that was verified is in o. None unless both models were timed.
    """
    verified = _by_repeat(times, target, Outputs.ALL)
    nothing = pd.DataFrame(index=verified.index, dtype=float)
    catchup = nothing if draft is None else _by_repeat(times, draft, Outputs.LAST)
    if verified.empty or (catchup.empty and draft is not None):
        return None
    passes = {"pass": verified, "catchup": catchup}
    return {kind: own.div(verified[1], axis="index").dropna() for kind, own in passes.items()}


def timed_costs(
    times: pd.DataFrame, target: str, draft: str, statistics: Statistics, *, replays: bool
) -> CostModel | None:
    """Return the costs of a pair from its timed passes alone: o and r are 0.

    `times` are rows of `pass_times.parquet` of one engine. None unless both models were timed.
    """
    timed = timed_steps(times, target, draft)
    if timed is None or 1 not in timed["catchup"]:
        return None
    passes = pd.concat([timed["catchup"][[1]], *timed.values()], axis="columns", join="inner")
    logs = np.log(passes.to_numpy(float))
    if not len(logs):
        return None
    others = len(logs) - 1
    without = np.exp((logs.sum(axis=0) - logs) / others) if others else logs[:0]
    return CostModel(
        knots=_knots([1], timed, []),
        costs=np.append(np.exp(logs.mean(axis=0)), 0.0),
        without=np.pad(without, ((0, 0), (0, 1))),
        replays=replays,
        degrees=others,
        confidence=statistics.confidence,
    )


def _knots(
    gammas: Iterable[Any], timed: Timed, overhead_widths: Iterable[Any]
) -> dict[str, tuple[int, ...]]:
    """Return `CostModel.knots`, of which the widths of v and d are those that were timed."""
    places: dict[str, Iterable[Any]] = {"draft": gammas, **timed}
    places |= {"overhead": overhead_widths, "replay": [0]}
    return {kind: tuple(sorted(map(int, at))) for kind, at in places.items()}


def _by_repeat(times: pd.DataFrame, model: str, outputs: Outputs) -> pd.DataFrame:
    """Return the milliseconds of a model's passes, by repeat and width."""
    own = times[(times["model"] == model) & (times["outputs"] == outputs)]
    return own.pivot(index="repeat", columns="n_tokens", values="ms").dropna(axis="columns")


def fit(runs: pd.DataFrame, statistics: Statistics, timed: Timed) -> CostModel | None:
    """Return the costs of one target with one draft; None without runs of both forced kinds.

    `runs` are rows of `schema.read_runs`'s frame with `step_ms`, the target's time for a token in
    their own baseline; those with a forced acceptance of 0 or 1 are used.

    All costs but c, which the engine logs, solve one least-squares problem in which none is
    negative and v, d and o never fall with the width. Its equations are those of each gamma with
    everything accepted, of each with nothing accepted, and of each timed pass; their errors count
    as shares of the time, those of timed passes less.

    The costs are fitted again without each repeat in turn: the repeats of a campaign follow one
    another, so all blocks of one, with their baselines, share what the machine did meanwhile.
    """
    known = runs[counts_are_known(runs) & runs["draft_ms"].notna() & runs["step_ms"].notna()]
    full = known[(known["forced_acceptance"] == 1) & (known["accepted"] == known["drafted"])]
    none = known[(known["forced_acceptance"] == 0) & (known["accepted"] == 0)]
    if full.empty or none.empty:
        return None
    read = pd.concat([full.assign(full=True), none.assign(full=False)])
    unfitted = CostModel(
        knots=_knots(
            {*read["gamma"]}, timed, {round(float(one.widths().max())) for one in counts_of(full)}
        ),
        costs=np.array([]),
        without=np.array([]),
        replays=bool(none["replays"].sum() > 0),
        degrees=int(read.groupby(["full", "gamma"])["repeat"].nunique().min()) - 1,
        confidence=statistics.confidence,
    )
    sums = _sums(read, unfitted)
    repeats = sorted(read["repeat"].unique())
    left = repeats if unfitted.degrees > 0 else []
    kept = [repeats, *([one for one in repeats if one != gone] for gone in left)]
    costs, *without = (_solve(sums, timed, some, unfitted) for some in kept)
    return replace(unfitted, costs=costs, without=np.array(without).reshape(-1, len(costs)))


def _sums(read: pd.DataFrame, model: CostModel) -> pd.DataFrame:
    """Return what the runs of each kind and repeat took: drafting, overhead, and the work."""
    step = read["step_ms"].to_numpy(float)
    drafting = read["draft_ms"].to_numpy(float) / step
    overhead = read["decode_ms"].to_numpy(float) / step - drafting
    work = np.array([model.work(one) for one in counts_of(read)])
    columns = pd.DataFrame(np.column_stack([drafting, overhead, work]), index=read.index)
    return columns.groupby([read["full"], read["gamma"], read["repeat"]]).sum()


def _solve(sums: pd.DataFrame, timed: Timed, repeats: list[int], model: CostModel) -> Array:
    """Return the costs that best explain what some repeats took."""
    from scipy.optimize import nnls

    kept = sums[sums.index.isin(repeats, level="repeat")]
    took = kept.groupby(level=["full", "gamma"]).sum().to_numpy(float)
    drafting_steps, overhead_steps = took[:, 0], took[:, 1]
    drafted, amounts = np.split(took[:, 2:], [len(model.knots["draft"])], axis=1)
    drafting = (drafting_steps[:, None] * (drafted > 0)).sum(axis=0) / drafted.sum(axis=0)
    rises = _rises(model)
    single = np.zeros(len(rises))
    single[: len(model.knots["pass"])] = 1  # v(1), from which v rises
    means = []
    for steps in timed.values():
        known = steps[steps.index.isin(repeats)]
        means.append(np.log(steps if known.empty else known).mean().to_numpy(float))
    passes = np.exp(np.concatenate(means))
    work = np.concatenate([amounts, np.eye(len(passes), len(rises))])
    times = np.concatenate([overhead_steps, passes])
    weights = np.repeat([1.0, _TIMED_WEIGHT], [len(overhead_steps), len(passes)]) / times
    found, _ = nnls((work @ rises) * weights[:, None], (times - work @ single) * weights)
    return np.concatenate([drafting, single + rises @ found])


def _rises(model: CostModel) -> Array:
    """Return the matrix from what v, d and o rise by at each width, and r, to their values."""
    from scipy.linalg import block_diag

    sizes = [len(knots) for kind, knots in model.knots.items() if kind != "draft"]
    blocks = [np.tril(np.ones((size, size))) for size in sizes]
    blocks[0][:, 0] = 0  # v(1) is the unit
    return np.asarray(block_diag(*blocks))
