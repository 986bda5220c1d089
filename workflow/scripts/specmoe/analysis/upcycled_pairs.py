"""Twins: a dense model, and MoEs upcycled from its file, which write the same text.

They have the same tokens, acceptance and active weights, up to a router. So where they gain unlike,
it is because of the experts that a pass over several tokens has to read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import by_group, mean_ratio
from specmoe.config.block import MEASURED_BY, Outputs
from specmoe.config.measurement import Statistics
from specmoe.models.info import Size

_SHARED = [
    *(*MEASURED_BY, "suite", "draft", "gamma", "forced_acceptance"),
    *("prompt", "repeat", "iteration"),
]
_COUNTED = ("drafted", "accepted", "speedup", "tokens")


def compare_pairs(
    runs: pd.DataFrame, dense_of: Mapping[str, str], statistics: Statistics
) -> pd.DataFrame:
    """Return one row per setting that an MoE and its dense counterpart have on the same prompts.

    `runs` are pairs of one temperature without controls, `dense_of` names the dense model that each
    MoE was upcycled from. The twins' runs with a prompt in one repeat are a pair, and intervals are
    over repeats. Several γ of a draft also have a row together. Columns:

    - protocol, engine, dense (the dense counterpart), suite, target (the MoE), draft, method,
      draft_model, gamma (null: all of `gammas`), forced_acceptance (null: the draft's own).
    - prompts, pairs, repeats: how many.
    - acceptance_rate, dense_acceptance: accepted / drafted of all runs; their difference.
    - same_tokens: share of the pairs with the same tokens; null where acceptance is forced, as the
      text then is no model's.
    - speedup, dense_speedup, ratio of the first to the second: geometric means, each with its
      interval, Student's t over repeats. The ratio's is on the pairs' own.
    """
    pairs = _pairs(runs, dense_of)
    if pairs.empty:
        return pd.DataFrame()

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        by_gamma: dict[Any, pd.DataFrame] = dict(list(members.groupby("gamma")))
        every = {pd.NA: members} if len(by_gamma) > 1 else {}
        for gamma, its in (by_gamma | every).items():
            yield {"gamma": gamma} | _compared(its, statistics)

    setting = [*MEASURED_BY, "suite", "dense", "target", "draft", "forced_acceptance"]
    return by_group(pairs, setting, rows).astype({"gamma": "Int64"})


def _pairs(runs: pd.DataFrame, dense_of: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each pair of runs: the MoE's columns, the dense model's with `dense_`."""
    runs = runs.assign(block=runs["repeat"])
    routed = runs[runs["target"].isin(dense_of)]
    routed = routed.assign(dense=routed["target"].map(dense_of))
    dense = runs[["target", *_SHARED, *_COUNTED]].rename(
        columns={"target": "dense", **{name: f"dense_{name}" for name in _COUNTED}}
    )
    pairs = routed.merge(dense, on=["dense", *_SHARED], validate="m:1")
    return pairs.assign(ratio=pairs["speedup"] / pairs["dense_speedup"])


def _compared(pairs: pd.DataFrame, statistics: Statistics) -> dict[str, object]:
    own, dense = (_share(pairs[f"{of}accepted"], pairs[f"{of}drafted"]) for of in ("", "dense_"))
    known = pairs[pairs["tokens"].notna() & pairs["dense_tokens"].notna()]
    same = [
        list(one) == list(other)
        for one, other in zip(known["tokens"], known["dense_tokens"], strict=True)
    ]
    forced = pairs["forced_acceptance"].notna().any()
    first = pairs.iloc[0]
    return {
        "method": first["method"],
        "draft_model": first["draft_model"],
        "gammas": ", ".join(map(str, sorted(pairs["gamma"].unique()))),
        "prompts": pairs["prompt"].nunique(),
        "pairs": len(pairs),
        "repeats": pairs["block"].nunique(),
        "acceptance_rate": own,
        "dense_acceptance": dense,
        "acceptance_difference": own - dense,
        "same_tokens": np.nan if forced or not same else float(np.mean(same)),
        **mean_ratio("speedup", pairs, statistics),
        **mean_ratio("dense_speedup", pairs, statistics),
        **mean_ratio("ratio", pairs, statistics),
    }


def _share(accepted: pd.Series, drafted: pd.Series) -> float:
    counted = accepted.notna().all() and drafted.sum() > 0
    return float(accepted.sum() / drafted.sum()) if counted else np.nan


def upcycled_passes(
    pass_times: pd.DataFrame,
    dense_of: Mapping[str, str],
    sizes: Mapping[str, Size],
    statistics: Statistics,
) -> pd.DataFrame:
    """Return what a pass costs each of several twins, one row per model and width.

    `pass_times` is `pass_times.parquet`, `sizes` the models'. Columns:

    - engine, dense (the dense counterpart, which has rows too), model, n_tokens (of a pass),
      repeats.
    - steps: the pass over that of a single token, in the same repeat; ratio: steps over the dense
      twin's. Geometric means with intervals, Student's t over repeats.
    - experts: distinct ones that a pass visits in a layer, as counted; experts_even: as expected of
      even routing. Null if dense.
    """
    passes = pass_times[pass_times["outputs"] == Outputs.ALL]
    keys = ["engine", "repeat"]
    single = passes[passes["n_tokens"] == 1][["model", *keys, "ms"]]
    passes = passes.merge(single, on=["model", *keys], suffixes=("", "_single"))
    # A repeat is a block, and all passes are over one text.
    passes = passes.assign(
        steps=passes["ms"] / passes["ms_single"], block=passes["repeat"], prompt="passage"
    )
    twins = {**dense_of, **{dense: dense for dense in dense_of.values()}}
    of_twins = passes[passes["model"].isin(twins)]
    of_twins = of_twins.assign(dense=of_twins["model"].map(twins))
    dense = passes[["model", *keys, "n_tokens", "steps"]]
    dense = dense.rename(columns={"model": "dense", "steps": "dense_steps"})
    pairs = of_twins.merge(dense, on=["dense", *keys, "n_tokens"], validate="m:1")
    pairs = pairs.assign(ratio=pairs["steps"] / pairs["dense_steps"])
    # A family needs two members.
    pairs = pairs[pairs.groupby("dense")["model"].transform("nunique") > 1]

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        size, n_tokens = sizes.get(members["model"].iloc[0]), members["n_tokens"].iloc[0]
        yield {
            "repeats": members["repeat"].nunique(),
            **mean_ratio("steps", members, statistics),
            **mean_ratio("ratio", members, statistics),
            "experts": members["experts"].astype(float).mean(),
            "experts_even": size.evenly_visited(n_tokens) if size and size.experts else np.nan,
        }

    return by_group(pairs, ["engine", "dense", "model", "n_tokens"], row)
