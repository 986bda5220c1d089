"""The cost model of a target and its draft, from runs whose acceptance was imposed."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.cost_model import Array, CostModel, RunCounts, counts_are_known
from specmoe.config.schema import Statistics

_DRAFT, _REST, _WORK = 0, 1, 2  # columns of a stratum's sums; the work is as wide as the costs


class _Stratum(NamedTuple):
    """Runs of one gamma in which all drafted tokens were accepted, or none.

    `sums` has, for each repeat or for each choice of them, the steps that drafting took, those of
    the rest, and the work; `widest` is the widest pass.
    """

    gamma: int
    full: bool
    widest: int
    sums: Array


def fit(runs: pd.DataFrame, settings: Statistics) -> CostModel | None:
    """Return the costs of one target with one draft.

    `runs` are rows of `schema.read_runs`'s frame with `step_ms`, the target's time for a token in
    their own baseline. Only runs with an imposed acceptance of 0 or 1 are used.
    Returns None unless there are some of both.

    The costs are fitted again without each repeat in turn: the repeats of a campaign follow one
    another, so all blocks of one share what the machine did meanwhile.
    """
    known = runs[counts_are_known(runs) & runs["draft_ms"].notna() & runs["step_ms"].notna()]
    full = known[(known["imposed_acceptance"] == 1) & (known["accepted"] == known["drafted"])]
    none = known[(known["imposed_acceptance"] == 0) & (known["accepted"] == 0)]
    if full.empty or none.empty:
        return None
    read = pd.concat([full.assign(full=True), none.assign(full=False)])
    nothing = np.array([])
    unfitted = CostModel(
        gammas=tuple(sorted({int(gamma) for gamma in read["gamma"]})),
        widths=(1, *sorted({_widest(counts) for counts in _counts(full)})),
        costs=nothing,
        without=nothing,
        replay_costs=nothing,
        replays=bool(none["replays"].sum() > 0),
        degrees=int(read.groupby(["full", "gamma"])["repeat"].nunique().min()) - 1,
        confidence=settings.confidence,
    )
    by_repeat = _by_repeat(read, unfitted)
    (costs,), by_gamma = _solve([_summed(one) for one in by_repeat], unfitted)
    without, without_by_gamma = np.empty((0, len(costs))), np.empty((0, by_gamma.shape[1]))
    if unfitted.degrees > 0:
        without, without_by_gamma = _solve([_without(one) for one in by_repeat], unfitted)
    return replace(
        unfitted,
        costs=costs,
        without=without,
        replay_costs=np.concatenate([by_gamma, without_by_gamma]),
    )


def _by_repeat(read: pd.DataFrame, model: CostModel) -> list[_Stratum]:
    """Return the strata with the sums of each repeat; zeros where a stratum lacks one."""
    repeats = sorted(read["repeat"].unique())
    strata = []
    for (full, _), members in read.groupby(["full", "gamma"]):
        step = members["step_ms"].to_numpy(float)
        drafting = members["draft_ms"].to_numpy(float) / step
        rest = members["decode_ms"].to_numpy(float) / step - drafting
        counts = _counts(members)
        work = np.array([model.work(one) for one in counts])
        columns = pd.DataFrame(np.column_stack([drafting, rest, work]), index=members["repeat"])
        sums = columns.groupby(level=0).sum().reindex(repeats, fill_value=0).to_numpy(float)
        strata.append(_Stratum(counts[0].gamma, bool(full), max(map(_widest, counts)), sums))
    return strata


def _counts(members: pd.DataFrame) -> list[RunCounts]:
    return [RunCounts.of(row) for row in members.to_dict("records")]


def _widest(counts: RunCounts) -> int:
    return round(float(counts.widths().max()))


def _summed(stratum: _Stratum) -> _Stratum:
    return stratum._replace(sums=stratum.sums.sum(axis=0, keepdims=True))


def _without(stratum: _Stratum) -> _Stratum:
    return stratum._replace(sums=stratum.sums.sum(axis=0) - stratum.sums)


def _solve(strata: list[_Stratum], model: CostModel) -> tuple[Array, Array]:
    """Return the costs by every row of the sums, and a replay's at each gamma by itself."""
    drafting = _drafting(strata, model)
    passes = _passes([one for one in strata if one.full], model)
    of_passes = slice(_WORK + model.pass_costs.start, _WORK + len(model.gammas) + len(model.widths))
    excess, replays = (np.zeros((len(drafting), len(model.gammas))) for _ in range(2))
    for stratum in strata:
        if not stratum.full:
            at = model.gammas.index(stratum.gamma)
            explained = (stratum.sums[:, of_passes] * passes).sum(axis=1)
            excess[:, at] = stratum.sums[:, _REST] - explained
            replays[:, at] = stratum.sums[:, -1]
    by_gamma = np.divide(excess, replays, out=np.full_like(excess, np.nan), where=replays > 0)
    total = replays.sum(axis=1)
    replay = np.divide(excess.sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    return np.column_stack([drafting, passes, replay]), by_gamma


def _drafting(strata: list[_Stratum], model: CostModel) -> Array:
    """Return c at each gamma: what drafting took, over the tokens drafted."""
    costs = []
    for place, gamma in enumerate(model.gammas):
        members = [one.sums for one in strata if one.gamma == gamma]
        took = sum(sums[:, _DRAFT] for sums in members)
        costs.append(took / sum(sums[:, _WORK + place] for sums in members))
    return np.column_stack(costs)


def _passes(full: list[_Stratum], model: CostModel) -> Array:
    """Return v at each width.

    Runs whose widest pass has a given width have passes of that width and of smaller ones, so
    there are as many equations as widths, and each brings one that is new.
    """
    widths = model.widths[1:]
    shape = (len(full[0].sums), len(widths), len(model.widths))
    work, took = np.zeros(shape), np.zeros(shape[:2])
    start = _WORK + model.pass_costs.start
    for stratum in full:
        at = widths.index(stratum.widest)
        work[:, at] += stratum.sums[:, start : start + len(model.widths)]
        took[:, at] += stratum.sums[:, _REST]
    single = work[..., 0]  # a pass of width 1 is the unit
    solved = np.linalg.solve(work[..., 1:], (took - single)[..., None])[..., 0]
    return np.column_stack([np.ones(len(solved)), solved])
