"""Runs of requests at once, whose gains in throughput are known."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.registry import Analysis

from .paper_analyses import SUITES, full, settings_of
from .paper_analyses import _row as row_of

USER_RATE = 50.0  # of the target without speculation: a pass gives every user a token


def loads(gains: Mapping[int, float], gamma: int = 4, noise: float = 0.0) -> list[dict[str, Any]]:
    """Return runs with speculation and without, by the gain at each number of requests.

    The gain of a block is off by a normal error of its logarithm, with the deviation `noise`.
    """
    generator, rows = np.random.default_rng(gamma), []
    for (at_once, gain), repeat in product(gains.items(), range(3)):
        found = gain * float(np.exp(noise * generator.standard_normal()))
        block = f"U/moe_q4/{at_once}/draft_0.8b-{gamma}/r{repeat}"
        common = {"block": block, "concurrency": at_once, "level": str(at_once), "load_s": 1.0}
        counts = {"rounds": 40, "drafted": 160, "accepted": 59, "replays": 0, "replays_rejected": 0}
        for prompt in ("code", "poem"):
            plain = {"run": f"{block}/baseline/{prompt}"}
            drafted = counts | {"run": f"{block}/g{gamma}/{prompt}", "baseline": plain["run"]}
            for draft, arm_gamma, rate, more in (
                ("none", 0, USER_RATE, plain),
                ("draft_0.8b", gamma, USER_RATE * found, drafted),
            ):
                row = row_of("U", "moe_q4", draft, arm_gamma, prompt, repeat, rate)
                rows.append(row | common | {"load_tokens_per_second": at_once * rate} | more)
    return rows


@cache
def with_loads() -> Analysis:
    """Return a campaign whose gain falls with γ = 4, from 1.3 to 0.9, and with γ = 2 does not."""
    rows = loads({1: 1.3, 2: 1.1, 4: 0.9}, noise=0.01)
    rows += loads({1: 1.2, 2: 1.2, 4: 1.2}, gamma=2, noise=0.01)
    suites = SUITES.iloc[:1].assign(suite="U", factor="requests")
    return replace(full(), levels=settings_of(rows).levels, suites=pd.concat([SUITES, suites]))
