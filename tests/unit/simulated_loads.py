"""Rows of loads whose gains in throughput are planted, for the tests of requests at once."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.registry import Analysis

from .paper_analyses import N_PREDICT, SUITES, full, settings_of
from .paper_analyses import _row as row_of

PROMPTS = ("code", "poem")
PASS_MS = 20.0


def loads(
    gains: Mapping[int, float],
    *,
    gamma: int = 4,
    repeats: int = 3,
    noise: float = 0.0,
    generator: np.random.Generator | None = None,
) -> list[dict[str, Any]]:
    """Return rows of loads with a draft and without, by the gain at each number of requests.

    A pass of the target without a draft takes PASS_MS and gives every user a token. The gain of a
    block is off by a normal error of its logarithm, with the deviation `noise`.
    """
    generator = generator or np.random.default_rng(1)
    rows = []
    for at_once, gain in gains.items():
        for repeat in range(repeats):
            found = gain * float(np.exp(noise * generator.standard_normal()))
            for prompt in PROMPTS:
                rows += _pair(at_once, gamma, repeat, prompt, found)
    return rows


def _pair(at_once: int, gamma: int, repeat: int, prompt: str, gain: float) -> list[dict[str, Any]]:
    target = "moe_q4"
    user = 1000 / PASS_MS
    alone = row_of("U", target, "none", 0, prompt, repeat, user)
    drafted = row_of("U", target, "draft_0.8b", gamma, prompt, repeat, user * gain)
    block = f"U/{target}/{at_once}/draft_0.8b-{gamma}/r{repeat}"
    tokens = at_once * 4 * N_PREDICT
    pair = []
    for arm, row, rate in (
        ("baseline", alone, at_once * user),
        (f"g{gamma}", drafted, at_once * user * gain),
    ):
        seconds = tokens / rate
        pair.append(
            row
            | {
                "block": block,
                "run": f"{block}/{arm}/{prompt}/p0",
                "repeat": repeat,
                "iteration": 0,
                "concurrency": at_once,
                "level": str(at_once),
                "load_s": seconds,
                "load_tokens": tokens,
                "load_tokens_per_second": rate,
                "load_decodes": tokens // at_once // (1 if arm == "baseline" else 2),
            }
        )
    counts = {"rounds": 40, "drafted": 160, "accepted": 59, "replays": 0, "replays_rejected": 0}
    pair[1] |= counts | {"baseline": pair[0]["run"]}
    return pair


@cache
def with_loads() -> Analysis:
    """Return a campaign whose gain falls with γ = 4, from 1.3 to 0.9, and with γ = 2 does not."""
    generator = np.random.default_rng(7)
    rows = [
        *loads({1: 1.3, 2: 1.1, 4: 0.9}, gamma=4, noise=0.01, generator=generator),
        *loads({1: 1.2, 2: 1.2, 4: 1.2}, gamma=2, noise=0.01, generator=generator),
    ]
    suites = SUITES.iloc[:1].assign(suite="U", factor="requests")
    return replace(full(), levels=settings_of(rows).levels, suites=pd.concat([SUITES, suites]))
