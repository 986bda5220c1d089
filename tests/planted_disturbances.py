"""Campaigns in which the machine disturbs some runs, or the audit marks some pairs.

How far is the advised speedup off, how often does its interval hold the truth, and how often is a
useless setting switched on: with all pairs, without those of disturbed or marked runs, and by the
rules of the analysis (`runs.disturbed`, `analysis.sound_prompts`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import Interval, log_means, of_blocks
from specmoe.analysis.sound_prompts import sound_prompts

from .planted_speedups import CONFIDENCE, World, frame_of

TRUTHS = (0.3, 0.2, 0.1)  # logarithms of the settings' speedups
# As suite D of a campaign on small synthetic models: little between blocks, much between prompts.
WORLD = World(0.04, 0.17, 3, 4, len(TRUTHS), run=0.08, session=0.0, shared=0.8)
Cells = Mapping[int, pd.DataFrame]


@dataclass
class Found:
    """What was advised of planted settings, over many campaigns."""

    errors: float = 0.0  # sum over campaigns: the logarithm of the advised speedup over its truth
    widths: float = 0.0  # sum of the half widths of its interval, of the logarithm
    held: int = 0  # the advised setting's interval holds its truth
    on: int = 0  # a setting without a gain was switched on
    none: int = 0  # nothing was left to advise
    count: int = 0

    @property
    def bias(self) -> float:
        """The mean error of the advised speedup, as a share."""
        return math.expm1(self.errors / max(self.count - self.none, 1))

    @property
    def half_width(self) -> float:
        """The mean half width of the intervals, of the logarithm."""
        return self.widths / max(self.count - self.none, 1)

    @property
    def coverage(self) -> float:
        """The share of the intervals that held the truth."""
        return self.held / max(self.count - self.none, 1)

    def add(self, cells: Cells, useless: Cells) -> None:
        """Count what is advised of a campaign, and of one in which no setting gains."""
        self.count += 1
        self.on += any(low > 1 for low, _ in _joint(useless).values())
        if not cells:
            self.none += 1
            return
        joint = _joint(cells)
        means = {key: math.log(own.low * own.high) / 2 for key, own in joint.items()}
        gains = [key for key in cells if joint[key].low > 1]
        best = max(gains or cells, key=means.__getitem__)
        self.errors += means[best] - TRUTHS[best]
        self.widths += math.log(joint[best].high / joint[best].low) / 2
        self.held += joint[best].low <= math.exp(TRUTHS[best]) <= joint[best].high


def disturbed(
    generator: np.random.Generator, cells: Cells, *, share: float, factor: float
) -> dict[int, pd.DataFrame]:
    """Return settings of which a share of the runs, and of the shared baselines, was slowed down.

    Added: `left`, whether the pair has a disturbed run.
    """
    [first, *_] = cells.values()
    of_baselines = generator.random(len(first)) < share
    return {
        key: own.assign(
            left=(slow := generator.random(len(own)) < share) | of_baselines,
            speedup=own["speedup"] * factor ** (of_baselines.astype(float) - slow),
        )
        for key, own in cells.items()
    }


def marked(cells: Cells, *, share: float, of: str) -> dict[int, pd.DataFrame]:
    """Return settings of which about a share of the pairs is marked, by their speed.

    `of`: `fast` or `slow` pairs, by their noise, or `fast prompts`, by their own gain. Added:
    `left`, whether the pair is marked.
    """
    found = {}
    for key, own in cells.items():
        logs = np.log(own["speedup"]).to_numpy()
        own_mean = own.groupby("prompt")["speedup"].transform(lambda one: np.log(one).mean())
        noise = logs - own_mean.to_numpy()
        values = own_mean.to_numpy() - logs.mean() if of == "fast prompts" else noise
        scale = WORLD.prompt if of == "fast prompts" else np.hypot(WORLD.run, WORLD.block)
        values = -values if of == "slow" else values
        beyond = -NormalDist().inv_cdf(share) * scale
        found[key] = own.assign(left=values > beyond)
    return found


def everything(cells: Cells) -> Cells:
    """Return the settings as they are."""
    return cells


def without_pairs(cells: Cells, *, adjusted: bool = True) -> Cells:
    """Return the settings without the pairs to leave out.

    Blocks are compared at the same prompts, unless not `adjusted`.
    """
    kept = {key: own[~own["left"]] for key, own in cells.items()}
    return kept if adjusted else {key: own.assign(prompt=0) for key, own in kept.items()}


def by_rule(cells: Cells) -> Cells:
    """Return the settings on the pairs that advice compares."""
    settings = {key: own.assign(marked=own["left"], impossible=False) for key, own in cells.items()}
    found = sound_prompts(settings, {})
    return {
        key: own[~(own["marked"] | own["prompt"].isin(found.odd))]
        for key, own in settings.items()
        if key not in found.aside
    }


def without_prompts(cells: Cells) -> Cells:
    """Return the settings without every prompt of a pair to leave out, in all repeats."""
    odd = {prompt for own in cells.values() for prompt in own.loc[own["left"], "prompt"]}
    kept = {key: own[~own["prompt"].isin(odd)] for key, own in cells.items()}
    return {key: own for key, own in kept.items() if len(own)}


WAYS: dict[str, Callable[[Cells], Cells]] = {
    "all pairs": everything,
    "pairs out, plain": partial(without_pairs, adjusted=False),
    "pairs out": without_pairs,
    "prompts out": without_prompts,
    "the rule": by_rule,
}


def simulate(
    plant: Callable[[np.random.Generator, Cells], Cells],
    ways: list[str],
    *,
    repeats: int,
    prompts: int,
    times: int,
    seed: int,
) -> dict[str, Found]:
    """Return what each way advises of campaigns in which `plant` marks pairs to leave out."""
    generator = np.random.default_rng(seed)
    found = {way: Found() for way in ways}
    world = replace(WORLD, blocks=repeats, prompts=prompts)
    for _ in range(times):
        planted = []
        for truths in (TRUTHS, (0.0,) * len(TRUTHS)):
            [target] = world.logs(generator, 1, truths)
            planted.append(plant(generator, dict(enumerate(map(frame_of, target)))))
        for way in ways:
            found[way].add(*map(WAYS[way], planted))
    return found


def _joint(cells: Cells) -> dict[int, Interval]:
    return {
        key: of_blocks(log_means(own).to_numpy()).interval(CONFIDENCE, len(cells))
        for key, own in cells.items()
    }
