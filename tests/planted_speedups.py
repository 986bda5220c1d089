"""Campaigns with planted speedups and spreads: do intervals hold the truth, is the advice right?

Standard deviations are of the logarithm of speedup, estimated from the shipped campaigns' rows by
`estimated_spread` (`python tests/benchmarks/interval_coverage.py --estimate` prints them).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Answer, deciding_intervals, judge, look_confidence
from specmoe.analysis.intervals import (
    Interval,
    interval_of_rate,
    interval_of_speedup,
    interval_over_prompts,
    joint_intervals,
    ratio_of_speedups,
)
from specmoe.config.schema import Statistics

STATISTICS = Statistics()
CONFIDENCE = STATISTICS.confidence
PROMPTS, PASSES = 4, 2
REPEATS = 3
KINDS = [
    *("speedup", "rate", "other prompts", "ratio, same blocks", "ratio, other blocks"),
    *("all settings", "all, other prompts"),
]


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithm of speedup.

    - block: between blocks; shared: the share of its square that settings of a repeat have in
      common, through their baseline and the minute.
    - prompt: between prompts, in each setting; rest: of a block's mean for a prompt, beyond both.
      Half of its square is planted between passes (the shipped rows have a single one).
    """

    block: float
    shared: float
    prompt: float
    rest: float


SPREADS = {
    # An earlier synthetic, suite B, on a busy machine: the widest spread that was seen.
    "synthetic B": Spread(block=0.27, shared=0.70, prompt=0.16, rest=0.16),
    # mechanism of release 1.1.0, suite D: little between blocks, much between prompts.
    "mechanism D": Spread(block=0.04, shared=0.81, prompt=0.17, rest=0.08),
    # synthetic of release 1.1.0, suite D: the widest spread between prompts.
    "synthetic D": Spread(block=0.05, shared=0.74, prompt=0.27, rest=0.09),
    # resources/campaigns/true-shape, suite R, which has one prompt: prompts as in mechanism's D.
    "true-shape R": Spread(block=0.04, shared=0.31, prompt=0.17, rest=0.05),
}


def estimated_spread(compared: pd.DataFrame) -> Spread:
    """Return the spread of one suite's rows of `with_speedups`, by analysis of variance.

    Variances are averaged over cells, and shared over targets; negative estimates count as 0.
    """
    logs = compared.assign(log=np.log(compared["speedup"].astype(float)))
    cell = ["target", "draft", "gamma", "imposed_acceptance"]
    variances, shared = [], np.zeros(2)
    for _, members in logs.groupby(cell, dropna=False):
        values = members.groupby(["repeat", "prompt"])["log"].mean().unstack().to_numpy(float)
        blocks, prompts = values.shape
        of_block, of_prompt = values.mean(axis=1), values.mean(axis=0)
        if prompts == 1:
            variances.append([of_block.var(ddof=1), math.nan, math.nan])
            continue
        rest = values - of_block[:, None] - of_prompt + values.mean()
        square = (rest**2).sum() / ((blocks - 1) * (prompts - 1))
        between = (of_block.var(ddof=1) - square / prompts, of_prompt.var(ddof=1) - square / blocks)
        variances.append([*between, square])
    for _, members in logs.groupby("target"):
        table = members.assign(imposed_acceptance=members["imposed_acceptance"].fillna(-1))
        means = table.groupby(["repeat", *cell])["log"].mean().unstack(cell).to_numpy(float)
        errors = means - means.mean(axis=0)
        total = (errors**2).sum()
        common = ((errors.sum(axis=1) ** 2).sum() - total) / max(errors.shape[1] - 1, 1)
        shared += [common, total]
    block, prompt, rest = np.sqrt(np.clip(np.mean(variances, axis=0), 0, None))
    return Spread(float(block), float(max(shared[0] / shared[1], 0)), float(prompt), float(rest))


def campaign(
    generator: np.random.Generator,
    spread: Spread,
    repeats: int,
    truths: Sequence[float],
    *,
    tails: int | None = None,
    other_prompts: bool = False,
    prompts: int = PROMPTS,
    passes: int = PASSES,
) -> list[pd.DataFrame]:
    """Return rows of `with_speedups`, a frame for each setting, all in the same blocks.

    `truths` are the settings' logarithms of speedup, on the prompts that are sent, or on prompts
    of their kind if `other_prompts`. Errors of blocks are normal, or Student's with so many
    degrees of freedom if `tails` is given.
    """

    def of_blocks(*shape: int) -> np.ndarray:
        if tails is None:
            return generator.standard_normal(shape)
        return generator.standard_t(tails, shape) / math.sqrt(tails / (tails - 2))

    common = math.sqrt(spread.shared) * of_blocks(repeats)
    frames = []
    for truth in truths:
        block = spread.block * (common + math.sqrt(1 - spread.shared) * of_blocks(repeats))
        prompt = spread.prompt * generator.standard_normal(prompts)
        if not other_prompts:
            prompt -= prompt.mean()
        rest = spread.rest * math.sqrt(0.5) * generator.standard_normal((repeats, prompts, 1))
        error = spread.rest * math.sqrt(0.5) * generator.standard_normal((repeats, prompts, passes))
        logs = truth + block[:, None, None] + prompt[:, None] + rest + math.sqrt(passes) * error
        frames.append(_frame(logs))
    return frames


def _frame(logs: np.ndarray) -> pd.DataFrame:
    block, prompt, number = (index.ravel() for index in np.indices(logs.shape))
    return pd.DataFrame(
        {"block": block, "prompt": prompt, "pass": number, "speedup": np.exp(logs.ravel())}
    )


@dataclass
class Coverage:
    """How often intervals held the truth, and how wide they are."""

    held: int = 0
    count: int = 0
    widths: float = 0.0

    def add(self, interval: Iterable[float], truth: float) -> None:
        """Count an interval, given the truth."""
        low, high = interval
        self.held += bool(low <= truth <= high)
        self.count += 1
        self.widths += math.log(high / low) / 2 if low > 0 and high < math.inf else math.nan

    @property
    def share(self) -> float:
        """The share that held the truth."""
        return self.held / self.count

    @property
    def half_width(self) -> float:
        """The mean half width, of the logarithm."""
        return self.widths / self.count


def common(intervals: Mapping[int, Interval]) -> Interval:
    """Return what all intervals have in common; it holds a truth if all do."""
    lows, highs = zip(*intervals.values(), strict=True)
    return Interval(max(lows), min(highs))


def cover(
    spread: Spread, repeats: int, settings: int, *, tails: int | None, times: int, seed: int
) -> dict[str, Coverage]:
    """Return the coverage of each kind of interval."""
    generator = np.random.default_rng(seed)
    covered, useless = {kind: Coverage() for kind in KINDS}, [0.0] * settings
    for _ in range(times):
        cells = campaign(generator, spread, repeats, useless, tails=tails)
        for cell in cells:
            covered["speedup"].add(interval_of_speedup(cell, CONFIDENCE), 1)
        joint = joint_intervals(dict(enumerate(cells)), CONFIDENCE)
        covered["all settings"].add(common(joint), 1)
        if settings > 1:
            ends = ratio_of_speedups(cells[0], cells[1], CONFIDENCE)[1:]
            covered["ratio, same blocks"].add(ends, 1)
        [apart] = campaign(generator, spread, repeats, [0.3], tails=tails)
        apart["block"] += repeats
        ends = ratio_of_speedups(apart, cells[0], CONFIDENCE)[1:]
        covered["ratio, other blocks"].add(ends, math.exp(0.3))
        others = campaign(generator, spread, repeats, useless, tails=tails, other_prompts=True)
        joint = joint_intervals(dict(enumerate(others)), CONFIDENCE, other_prompts=True)
        covered["all, other prompts"].add(common(joint), 1)
        other = others[0]
        covered["other prompts"].add(interval_over_prompts(other, CONFIDENCE), 1)
        # A rate is the mean over prompts, so a block's is its error times that mean.
        prompts = np.exp(spread.prompt * generator.standard_normal(PROMPTS))
        [blocks] = campaign(generator, Spread(spread.block, 0, 0, 0), repeats, [0.0], tails=tails)
        rates = blocks["speedup"] * prompts[blocks["prompt"]]
        covered["rate"].add(interval_of_rate(rates, blocks["block"], CONFIDENCE), prompts.mean())
    return covered


@dataclass
class Errors:
    """Of campaigns in which an answer is wrong, how many get it at a look at REPEATS blocks.

    - on: no setting gains on prompts of the kind, and the answer is *on*.
    - here: none gains on the prompts that are sent, and it is that or *on for these prompts*.
    - off: one setting neither gains nor loses, the others lose by far, and it is *off*.
    """

    on: int
    here: int
    off: int


def errors(spread: Spread, prompts: int, settings: int, *, times: int, seed: int) -> Errors:
    """Return the wrong answers of so many campaigns of each kind."""
    generator = np.random.default_rng(seed)

    def wrong(truths: Sequence[float], *answers: Answer, other_prompts: bool) -> int:
        found = 0
        for _ in range(times):
            cells = campaign(
                *(generator, spread, REPEATS, truths),
                other_prompts=other_prompts,
                prompts=prompts,
                passes=1,
            )
            intervals = deciding_intervals(dict(enumerate(cells)), look_confidence(CONFIDENCE))
            found += judge(intervals.assign(looping=0.0), looping_share=1)[0] in answers
        return found

    useless = [0.0] * settings
    return Errors(
        on=wrong(useless, Answer.ON, other_prompts=True),
        here=wrong(useless, Answer.ON, Answer.HERE, other_prompts=False),
        off=wrong([0.0, *[-1.0] * (settings - 1)], Answer.OFF, other_prompts=False),
    )
