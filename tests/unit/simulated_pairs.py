"""Runs of a dense model and an MoE upcycled from it, with known speedups."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pandas as pd

from specmoe.analysis.registry import Analysis
from specmoe.analysis.summaries import with_speedups
from specmoe.analysis.upcycled_pairs import compare_pairs, compare_passes
from specmoe.config.schema import Statistics
from specmoe.models.info import Size

from .paper_analyses import baseline_runs, full, speculative_runs
from .simulated_rounds import timed_pass

DENSE, MOE, SINGLE, DRAFT = "dense_4b", "moe_q4", "moe_1", "draft_0.8b"
DENSE_OF = {MOE: DENSE, SINGLE: DENSE}
SIZES = {MOE: Size(10**10, 1e9, 9e9, 4, 1, 2), DENSE: Size(4 * 10**9, 4e9, 0, 0, 0, 2)}
BANDWIDTH = 1e12  # bytes a second, so that a gigabyte takes a millisecond


def runs_of_pair(
    speedups: Mapping[str, float],
    *,
    gammas: tuple[int, ...] = (4,),
    forced: float | None = None,
) -> pd.DataFrame:
    """Return runs of both targets: three repeats of two prompts."""
    prompts, repeats = ("code", "letter"), 3
    rows: list[dict[str, Any]] = baseline_runs(speedups, prompts, repeats)
    more = {"forced_acceptance": forced, "tokens": [1, 2, 3]}
    for gamma, prompt, (target, speedup) in product(gammas, prompts, speedups.items()):
        made = speculative_runs("S", target, DRAFT, gamma, [50 * speedup] * repeats, prompt)
        rows += [row | more for row in made]
    return pd.DataFrame(rows)


def pairs_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what the MoE gains next to its dense counterpart."""
    return compare_pairs(with_speedups(runs), DENSE_OF, {MOE: SINGLE}, Statistics())


def pass_times(costs: Mapping[str, Mapping[int, float]], repeats: int = 3) -> pd.DataFrame:
    """Return passes timed by themselves, by model and width, in ms; repeats scale them."""
    return pd.DataFrame(
        [
            timed_pass(model, n_tokens, ms * (1 + repeat), repeat)
            | {"experts": 1.0 + 0.5 * (n_tokens - 1) if model == MOE else None}
            for model, of_model in costs.items()
            for n_tokens, ms in of_model.items()
            for repeat in range(repeats)
        ]
    )


@cache
def with_upcycled_pairs() -> Analysis:
    """Return a campaign with an upcycled pair.

    The MoE gains 0.75 times what its dense counterpart does, also at forced acceptance; its pass
    over five tokens costs 3.0 single ones, and the dense model's 1.5.
    """
    speedups = {DENSE: 1.2, MOE: 0.9}
    own = runs_of_pair(speedups, gammas=(2, 4))
    forced = [
        runs_of_pair(speedups, gammas=(2, 4), forced=share).assign(suite="I", draft_model=DRAFT)
        for share in (0.0, 1.0)
    ]
    times = pass_times({DENSE: {1: 10, 5: 15}, MOE: {1: 10, 5: 30}})
    known = {"machine_memory_bandwidth_bytes_per_second": BANDWIDTH}
    return replace(
        full(),
        campaign=full().campaign.assign(**known, machine_memory_bandwidth_source="config"),
        upcycled_pairs=pd.concat([pairs_of(runs) for runs in [own, *forced]], ignore_index=True),
        pass_times=compare_passes(times, DENSE_OF, SIZES, BANDWIDTH, Statistics()),
    )
