"""The costs of a target and its draft, from runs of forced acceptance and timed passes."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.cost_model import KINDS, Array, CostModel, counts_are_known, counts_of
from specmoe.analysis.intervals import geometric_mean
from specmoe.config.block import Outputs
from specmoe.config.schema import Statistics


class Timed(NamedTuple):
    """What was timed by itself of a target and its draft, in ms, by repeat: rows of all frames.

    `passes` and `catchup` have a column for each width, the latter none without a draft model;
    `drafted` is the draft model's pass over one token, 0 without one.
    """

    passes: pd.DataFrame
    catchup: pd.DataFrame
    drafted: pd.Series
    token: pd.Series  # the server's own, of the target alone
    beside: pd.Series  # what the server does for a token beside its pass
    saved: pd.Series  # of a checkpoint of recurrent states in a round, and of going back to it
    restored: pd.Series


def timed_parts(
    times: pd.DataFrame, target: str, draft: str | None, token_ms: float, *, replays: bool
) -> Timed | None:
    """Return what was timed of a target and its draft model; None unless both were.

    `times` are rows of `pass_times.parquet` of one engine; `token_ms` is what the server takes for
    a token. A pass over one token and its sampling take as long, and are timed beside the others,
    so they stand for it where passes were timed in rows. Where rounds are replayed no pass is as
    wide as the one before it, so all graphs are new, and those of a catch-up are everywhere.
    """
    firsts = times.assign(ms=times["first_ms"].fillna(times["ms"]))
    passes = _by_repeat(firsts if replays else times, target, Outputs.ALL)
    read, drafted = (_by_repeat(some, draft, Outputs.LAST) for some in (firsts, times))
    if passes.empty or (draft is not None and read.empty):
        return None
    single = times[times["n_tokens"] == 1].set_index("repeat")
    of_target = single[(single["model"] == target) & (single["outputs"] == Outputs.ALL)]
    of_draft = single[(single["model"] == draft) & (single["outputs"] == Outputs.LAST)]
    unsampled = 0.0 if replays else token_ms - of_target["ms"]  # less the new graph of version 2
    # A draft model with a recurrent state goes back in every round, to where it began to draft.
    states = of_draft[["saved_ms", "restored_ms"]].sum(axis="columns").reindex(passes.index)
    return Timed(
        passes=passes,
        catchup=read,
        drafted=drafted.get(1, pd.Series(np.nan if draft else 0.0, passes.index)),
        token=(of_target["ms"] + of_target["sampled_ms"]).fillna(token_ms),
        beside=of_target["sampled_ms"].fillna(unsampled),
        saved=of_target["saved_ms"].fillna(0.0) * replays + states.fillna(0.0),
        restored=of_target["restored_ms"].fillna(0.0) * replays,
    )


def timed_costs(timed: Timed, statistics: Statistics, *, replays: bool) -> CostModel | None:
    """Return the costs of a pair from its timed passes alone; None if no repeat has all.

    A round then takes, beside its passes, what a token takes the server beside its own pass, and
    a checkpoint where it has one.
    """
    beside = timed.beside + timed.saved
    parts: Any = timed.token, timed.drafted, timed.passes, timed.catchup, beside, timed.restored
    costs = pd.concat([*parts], axis="columns").dropna().to_numpy(float)
    others = len(costs) - 1
    if others < 0:
        return None
    return CostModel(
        knots=_knots([1], timed, [1]),
        costs=costs.mean(axis=0),
        without=(costs.sum(axis=0) - costs) / others if others else costs[:0],
        replays=replays,
        degrees=others,
        confidence=statistics.confidence,
    )


def _knots(
    gammas: Iterable[Any], timed: Timed, overhead_widths: Iterable[Any]
) -> dict[str, tuple[int, ...]]:
    """Return `CostModel.knots`, of which the widths of v and d are those that were timed."""
    places: Any = [1], gammas, timed.passes, timed.catchup, overhead_widths, [0]
    return {kind: tuple(sorted(map(int, at))) for kind, at in zip(KINDS, places, strict=True)}


def _by_repeat(times: pd.DataFrame, model: str | None, outputs: Outputs) -> pd.DataFrame:
    """Return the milliseconds of a model's passes, by repeat and width; none of no model."""
    passes = times[(times["model"] == model) & (times["outputs"] == outputs)]
    return passes.pivot(index="repeat", columns="n_tokens", values="ms").dropna(axis="columns")


def fit(runs: pd.DataFrame, statistics: Statistics, timed: Timed) -> CostModel | None:
    """Return the costs of one target with one draft; None without runs of both forced kinds.

    `runs` are rows of `schema.read_runs`'s frame with `step_ms`, the target's time for a token in
    their own baseline, and forced acceptance. c is what the engine logs, with whatever acceptance;
    v and d are the timed passes; o and r are what runs take beyond them, by least squares of shares
    of the time: o of each γ with everything accepted, r with nothing accepted. A run's time is in
    tokens of its own baseline, as the machine's speed moves from block to block, and passes in
    those of the server that were timed beside them; costs are that in ms of a baseline's mean
    token.

    The costs are fitted again without each repeat in turn: the repeats of a campaign follow one
    another, so all blocks of one, with their baselines, share what the machine did meanwhile.
    """
    known = runs[counts_are_known(runs) & runs["draft_ms"].notna() & runs["step_ms"].notna()]
    full = known[(known["forced_acceptance"] == 1) & (known["accepted"] == known["drafted"])]
    none = known[(known["forced_acceptance"] == 0) & (known["accepted"] == 0)]
    if full.empty or none.empty:
        return None
    # Runs of other acceptance have None for `full`.
    read = known.assign(full=None)
    read.loc[full.index, "full"], read.loc[none.index, "full"] = True, False
    unfitted = CostModel(
        knots=_knots(
            {*read["gamma"]},
            timed,
            {1 + max(np.flatnonzero(counts.drafted)) for counts in counts_of(full)},
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
    kept = [repeats, *([repeat for repeat in repeats if repeat != gone] for gone in left)]
    token_ms = geometric_mean(read["step_ms"])
    costs, *without = (token_ms * _solve(sums, timed, some, unfitted) for some in kept)
    return replace(unfitted, costs=costs, without=np.array(without).reshape(-1, len(costs)))


def _sums(read: pd.DataFrame, model: CostModel) -> pd.DataFrame:
    """Return what the runs of each kind and repeat took: drafting, all else, and the work."""
    step = read["step_ms"].to_numpy(float)
    drafting = read["draft_ms"].to_numpy(float) / step
    beside = read["decode_ms"].to_numpy(float) / step - drafting
    work = np.array([model.work(counts) for counts in counts_of(read)])
    columns = pd.DataFrame(np.column_stack([drafting, beside, work]), index=read.index)
    return columns.groupby([read["full"], read["gamma"], read["repeat"]], dropna=False).sum()


def _solve(sums: pd.DataFrame, timed: Timed, repeats: list[int], model: CostModel) -> Array:
    """Return the costs, in tokens, that best explain what some repeats took."""
    kept = sums[sums.index.isin(repeats, level="repeat")]
    took = kept.groupby(level=["full", "gamma"], dropna=False).sum()
    every = sums.groupby(level="gamma").sum()
    # A γ that these repeats lack costs what it does in others.
    drafting = took.groupby(level="gamma").sum().reindex(every.index).fillna(every).to_numpy(float)
    drafts = slice(3, 3 + len(model.knots["draft"]))  # behind times and single steps
    each = drafting[:, 0] / drafting[:, drafts].sum(axis=1)
    forced = took[took.index.get_level_values("full").notna()].to_numpy(float)
    beside, work = forced[:, 1], forced[:, 2:]
    passes = pd.concat([timed.passes, timed.catchup], axis="columns")
    steps = passes.div(timed.token, axis="index").dropna()
    known = steps[steps.index.isin(repeats)]
    timed_steps = np.exp(np.log(steps if known.empty else known).mean().to_numpy(float))
    given = np.concatenate([[1.0], 0 * each, timed_steps])  # drafting is not in `beside`
    others = beside - work[:, : len(given)] @ given
    solved, *_ = np.linalg.lstsq(work[:, len(given) :] / beside[:, None], others / beside)
    return np.concatenate([[1.0], each, timed_steps, solved])
