"""Upcycled pairs: a dense model and an MoE that was made from its file, which write the same text.

Tokens, acceptance and active weights are the same, up to a router. So a difference in gain is due
to what STEPS names, one of which after the other changes from the dense model to the MoE, where the
models between were measured. How much of a pass is reading follows from its bytes, its time and the
memory's bandwidth.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import Mean, additive_model
from specmoe.analysis.summaries import acceptance_rate, by_group, mean_ratios, with_ends
from specmoe.audit.limits import LIMITS
from specmoe.config.block import MEASURED_BY, Outputs
from specmoe.config.models import UpcycleModel
from specmoe.config.schema import Statistics
from specmoe.measure.model_passes import BESIDE
from specmoe.models.info import Size

_RUN = ["prompt", "repeat", "iteration"]
_SHARED = [*MEASURED_BY, "suite", "draft", "gamma", "forced_acceptance", *_RUN]
_COUNTED = ("drafted", "accepted", "speedup", "tokens")
_RATIOS = ("speedup", "dense_speedup", "ratio")
_PASS_RATIOS = ("ms", "of_single", "of_token", "ratio", "bound_share")


STEPS = ("kernel", "file", "experts")
"""What changes from a dense model to an MoE of several experts. An MoE of one expert has the kernel
that multiplies by experts and the dense model's weights. With more experts of which every token
visits the same, its file is larger too. With a random router, a pass over several tokens reads
several experts, each for fewer tokens."""


def steps_to(
    upcycled: Mapping[str, UpcycleModel], targets: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return, by MoE, which of `targets` it has most in common with, and the steps in between."""

    def step(model: UpcycleModel) -> int:
        return 1 if model.experts == 1 else 2 if model.router == "constant" else 3

    steps = {}
    for name, model in upcycled.items():
        before = {0: model.source}
        for other, like in upcycled.items():
            same = (like.experts, like.used) in ((1, 1), (model.experts, model.used))
            if like.source == model.source and same and other in targets:
                before[step(like)] = other
        last = max(at for at in before if at < step(model))
        steps[name] = before[last], " and ".join(STEPS[last : step(model)])
    return steps


def compare_pairs(
    runs: pd.DataFrame,
    dense_of: Mapping[str, str],
    steps: Mapping[str, tuple[str, str]],
    statistics: Statistics,
) -> pd.DataFrame:
    """Return the table `upcycled_pairs`.

    `runs` are pairs of one temperature without controls, `dense_of` names the dense model that each
    MoE was upcycled from, `steps` is `steps_to`. Several γ of a draft model also have a row
    together. Ratios of models of one dense model multiply: they are differences of `_effects`, with
    the intervals of the pairs that each has.
    """
    pairs = runs[runs["target"].isin(dense_of)]
    before, step = ({name: its[place] for name, its in steps.items()} for place in (0, 1))
    pairs = pairs.assign(step=pairs["target"].map(step))
    roles: Any = (("dense", dense_of, "inner"), ("before", before, "left"))
    for role, model_of, how in roles:
        names = {"target": role} | {name: f"{role}_{name}" for name in _COUNTED}
        beside = runs[["target", *_SHARED, *_COUNTED]].rename(columns=names)
        pairs = pairs.assign(**{role: pairs["target"].map(model_of).astype(object)})
        pairs = pairs.merge(beside, how, [role, *_SHARED], validate="m:1")
    if pairs.empty:
        return pd.DataFrame()
    pairs = pairs.assign(
        ratio=pairs["speedup"] / pairs["dense_speedup"],
        step_ratio=pairs["speedup"] / pairs["before_speedup"],
    )

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        by_gamma: dict[Any, pd.DataFrame] = dict(list(members.groupby("gamma")))
        every = {pd.NA: members} if len(by_gamma) > 1 else {}
        for gamma, its in (by_gamma | every).items():
            effects = _effects(its)
            for target, of_target in its.groupby("target"):
                yield {"target": target, "gamma": gamma} | _compared(of_target, effects)

    setting = [*MEASURED_BY, "suite", "dense", "draft", "forced_acceptance"]
    settings = by_group(pairs, setting, rows).astype({"gamma": "Int64"})
    order = [*setting[:-2], "target", *setting[-2:]]
    settings = settings.sort_values(order, kind="stable", ignore_index=True)
    peers = [*MEASURED_BY, "suite", "target"]
    return with_ends(settings, peers, statistics, *_RATIOS, "step_ratio")


def _effects(pairs: pd.DataFrame) -> dict[str, float]:
    """Return the mean logarithm of speedup of a dense model and its MoEs, but for a constant.

    It is that of the additive model of runs and models: where a model lacks a run, the others' say
    how it would stand there.
    """
    rows, names = ["gamma", *_RUN], {"dense": "target", "dense_speedup": "speedup"}
    dense = pairs[[*rows, *names]].rename(columns=names)
    each = pd.concat([pairs[[*rows, *names.values()]], dense])
    logs = each.pivot_table("speedup", rows, "target").map(np.log)
    _, effects, *_ = additive_model(logs.fillna(0).to_numpy(), logs.notna().to_numpy())
    return dict(zip(logs.columns, effects, strict=True))


def _compared(pairs: pd.DataFrame, effects: Mapping[str, float]) -> dict[str, object]:
    first = pairs.iloc[0]

    def over(model: str, mean: Mean | None) -> Mean | None:
        log = effects[first["target"]] - effects.get(model, np.nan)
        return mean if mean is None or np.isnan(log) else mean._replace(log=log)

    means = mean_ratios(pairs, *_RATIOS)
    step = mean_ratios(pairs.dropna(subset="step_ratio"), "step_ratio")["step_ratio"]
    known = pairs[pairs["tokens"].notna() & pairs["dense_tokens"].notna()]
    same = [*map(np.array_equal, known["tokens"], known["dense_tokens"])]
    forced = pairs["forced_acceptance"].notna().any()
    return {
        **first[["method", "draft_model", "before", "step"]],
        "gammas": ", ".join(map(str, sorted(pairs["gamma"].unique()))),
        "prompts": pairs["prompt"].nunique(),
        "pairs": len(pairs),
        "repeats": pairs["repeat"].nunique(),
        "acceptance_rate": acceptance_rate(pairs["accepted"], pairs["drafted"]),
        "dense_acceptance": acceptance_rate(pairs["dense_accepted"], pairs["dense_drafted"]),
        "same_tokens": np.nan if forced or not same else float(np.mean(same)),
        **means,
        "ratio": over(first["dense"], means["ratio"]),
        "step_ratio": over(first["before"], step),
    }


def compare_passes(
    pass_times: pd.DataFrame,
    token_ms: Mapping[tuple[str, str], float],
    dense_of: Mapping[str, str],
    sizes: Mapping[str, Size],
    bandwidth: float | None,
    statistics: Statistics,
) -> pd.DataFrame:
    """Return the table `pass_times`: what forward passes took that were timed by themselves.

    `pass_times` is `pass_times.parquet`, `token_ms` what a token takes the server
    (`summaries.token_times`), `sizes` the models', `bandwidth` the machine's, in bytes a second.
    """
    members = {**dense_of, **{dense: dense for dense in dense_of.values()}}
    passes = pass_times[pass_times["outputs"] == Outputs.ALL]
    # A repeat is a block, and all passes are over one text.
    passes = passes.assign(
        dense=passes["model"].map(members), block=passes["repeat"], prompt="passage"
    )
    # A dense model alone is no pair.
    paired = passes.groupby("dense")["model"].transform("nunique") > 1
    passes["dense"] = passes["dense"].astype(object).where(paired, None)
    keys = ["engine", "repeat", "model", "n_tokens"]
    ms = passes.set_index(keys)["ms"]
    others: Any = {"of_single": {"n_tokens": 1}, "ratio": {"model": passes["dense"]}}
    for ratio, other in others.items():
        beside = pd.MultiIndex.from_frame(passes.assign(**other)[keys])
        passes[ratio] = passes["ms"] / ms.reindex(beside).to_numpy()

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        first = members.iloc[0]
        size, n_tokens = sizes.get(first["model"]), first["n_tokens"]
        read = size.pass_bytes(n_tokens) if size else np.nan
        bounded = size and size.file_bytes > LIMITS.cache_bytes
        bound = 1000 * read / bandwidth if bounded and bandwidth else np.nan
        own_token = token_ms.get((first["engine"], first["model"]), np.nan)
        members = members.assign(
            bound_share=bound / members["ms"], of_token=members["ms"] / own_token
        )
        experts = members["experts"].astype(float).mean()
        even = size.evenly_visited(n_tokens) if size and size.experts else np.nan
        layers = members["layers"].dropna()
        yield {
            "dense": first["dense"],
            "repeats": members["repeat"].nunique(),
            **mean_ratios(members, *_PASS_RATIOS),
            **{name: members[name].astype(float).mean() for name in ("first_ms", *BESIDE)},
            "experts": experts,
            "experts_even": even,
            "of_even": experts / even,
            "layers": (np.mean([*layers], axis=0) / even).tolist() if len(layers) else None,
            "read_bytes": read,
            "bound_ms": bound,
        }

    timed = by_group(passes, ["engine", "model", "n_tokens"], row)
    return with_ends(timed, ["engine", "model"], statistics, *_PASS_RATIOS)
