"""Runs of several machines whose speedups are planted, and how often their intervals hold them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import interval_of_speedup
from specmoe.analysis.machines import by_machine

from .unit.paper_analyses import BASELINE_RATE
from .unit.paper_analyses import _row as row_of

TARGET, DRAFT, GAMMA = "moe_q4", "draft_0.8b", 4
PROMPTS = ("code", "poem")
CONFIDENCE = 0.95


def shared_runs(
    gains: Mapping[str, float], *, blocks: int, noise: float, generator: np.random.Generator
) -> pd.DataFrame:
    """Return the runs of a campaign that machines shared, by the speedup that each has.

    Every machine measured so many blocks of one comparison. The speedup of a block is off by a
    normal error of its logarithm, with the deviation `noise`. The rate of a machine without a draft
    does not matter to a speedup, so each has its own.
    """
    rows = []
    for place, (host, gain) in enumerate(gains.items()):
        for number in range(blocks):
            repeat = number * len(gains) + place
            found = gain * float(np.exp(noise * generator.standard_normal()))
            block = f"B/{TARGET}/{DRAFT}/r{repeat}"
            for prompt in PROMPTS:
                rate = BASELINE_RATE * (place + 1)
                alone = row_of("B", TARGET, "none", 0, prompt, repeat, rate)
                drafted = row_of("B", TARGET, DRAFT, GAMMA, prompt, repeat, rate * found)
                common = {"host": host, "block": block, "repeat": repeat, "pass": 0}
                rows.append(alone | common | {"run": f"{block}/alone/{prompt}/p0"})
                rows.append(drafted | common | {"run": f"{block}/g4/{prompt}/p0"})
                rows[-1] |= {"rounds": 40, "drafted": 160, "accepted": 59}
                rows[-1] |= {"baseline": rows[-2]["run"], "common_prefix": 100}
    return pd.DataFrame(rows)


class Held(NamedTuple):
    """The shares of campaigns whose intervals hold the truth."""

    over_machines: float
    over_blocks: float  # which takes machines for alike


def coverage(
    machines: int,
    blocks: int,
    *,
    spread: float,
    noise: float,
    times: int,
    generator: np.random.Generator,
) -> Held:
    """Return how often intervals hold the mean speedup of all machines of which some measured.

    The logarithms of the machines' speedups have the standard deviation `spread`.
    """
    comparison = [f"B/x/r{repeat}" for repeat in range(machines * blocks)]
    frame = pd.DataFrame(
        {
            "block": comparison,
            "host": [f"m{repeat % machines}" for repeat in range(machines * blocks)],
            "repeat": range(machines * blocks),
            "pass": 0,
        }
    )
    units = by_machine(frame)["block"]
    held = np.zeros(2)
    for _ in range(times):
        own = np.tile(spread * generator.standard_normal(machines), blocks)
        speedup = np.exp(own + noise * generator.standard_normal(machines * blocks))
        for place, unit in enumerate((units, frame["block"])):
            compared = pd.DataFrame({"speedup": speedup, "block": unit, "prompt": "code"})
            low, high = interval_of_speedup(compared, CONFIDENCE)
            held[place] += low <= 1 <= high
    return Held(*(held / times))
