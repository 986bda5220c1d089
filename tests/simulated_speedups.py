"""Simulated targets of known speedups, and how often intervals and answers are right on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmoe.analysis.advice import Answer, decide
from specmoe.analysis.contenders import beaten_by_prediction, beaten_in_first
from specmoe.analysis.gamma_curves import PASSES_ERR
from specmoe.analysis.intervals import (
    MANY,
    Mean,
    block_mean,
    crossed_mean,
    student_quantile,
)
from specmoe.config.schema import Statistics

STATISTICS = Statistics()
CONFIDENCE = STATISTICS.confidence
MARGIN = 0.1  # that an example of the configuration asks for


@dataclass(frozen=True)
class World:
    """Targets with known speedups, all of whose settings were measured on the same prompts."""

    block: float  # deviations of the logarithm of speedup: between blocks
    prompt: float  # between prompts
    blocks: int
    prompts: int
    settings: int
    run: float = 0.05  # of each run
    session: float = STATISTICS.session_sd  # of all settings of a target together
    shared: float = 0.0  # the share of the squares of block and prompt that settings have in common

    def logs(
        self,
        generator: np.random.Generator,
        times: int,
        truths: Sequence[float],
        *,
        other_prompts: bool = False,
    ) -> np.ndarray:
        """Return logarithms of speedup, an array (times, settings, blocks, prompts).

        `truths` are those of the settings on the prompts that are sent, or on prompts of their kind
        if `other_prompts`.
        """

        def effects(deviation: float, blocks: int, prompts: int) -> np.ndarray:
            own, common = (
                generator.standard_normal((times, settings, blocks, prompts))
                for settings in (self.settings, 1)
            )
            return deviation * (math.sqrt(1 - self.shared) * own + math.sqrt(self.shared) * common)

        prompt = effects(self.prompt, 1, self.prompts)
        if not other_prompts:
            prompt -= prompt.mean(axis=-1, keepdims=True)
        session = self.session * generator.standard_normal((times, 1, 1, 1))
        run = self.run * generator.standard_normal(
            (times, self.settings, self.blocks, self.prompts)
        )
        return (
            np.reshape(truths, (-1, 1, 1))
            + session
            + effects(self.block, self.blocks, 1)
            + prompt
            + run
        )


def held(world: World, *, times: int, seed: int) -> dict[str, float]:
    """Return the share of so many targets without a gain at which each kind of interval holds 1.

    The kinds of the best have to hold for all settings at once.
    """
    generator = np.random.default_rng(seed)
    useless = [0.0] * world.settings
    these, others = (
        world.logs(generator, times, useless, other_prompts=other) for other in (False, True)
    )
    means = {
        "these prompts": block_mean(these.mean(axis=-1)),
        "prompts like these": crossed_mean(others),
    }
    shares = {}
    for kind, mean in means.items():
        own, best = (
            abs(mean.log) <= mean.reach(CONFIDENCE, among) for among in (1, world.settings)
        )
        shares |= {kind: own.mean(), f"{kind}, the best": best.all(axis=-1).mean()}
    return shares


def answers(logs: np.ndarray, kept: np.ndarray | None = None) -> list[Answer]:
    """Return the answer to each target of `World.logs`.

    `kept`, an array (times, settings), says which settings were measured to the end. The best is
    chosen among all of the first repeat, and *off* is said of those that were kept.
    """
    these, others = block_mean(logs.mean(axis=-1)), crossed_mean(logs)
    settings = logs.shape[1]

    def end(mean: Mean, side: int, among: int) -> np.ndarray:
        return np.exp(mean.log + side * mean.reach(CONFIDENCE, among, STATISTICS.session_sd))

    ends = [end(these, -1, settings), end(others, -1, settings), end(these, 1, 1)]
    if kept is not None:
        ends = [
            np.where(kept, one, np.nan if side < 0 else 0.0)
            for one, side in zip(ends, (-1, -1, 1), strict=True)
        ]
    return [decide(*of_target) for of_target in zip(*ends, strict=True)]


def kept_in_stages(
    logs: np.ndarray, truths: Sequence[float], generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return which settings of `World.logs` are measured in the first repeat, and to the end.

    Predictions of their truths err by PASSES_ERR, as their intervals say. What is not measured in
    the first repeat is no rival there.
    """
    predicted = truths + PASSES_ERR * generator.standard_normal(logs.shape[:2])
    reach = PASSES_ERR * student_quantile(MANY, CONFIDENCE)
    ends = predicted, predicted - reach, predicted + reach
    first = ~beaten_by_prediction(*ends, MARGIN)
    block = np.where(first[..., None], logs[:, :, 0], -9.0)
    return first, first & ~beaten_in_first(block, STATISTICS, MARGIN)


GAINS = (Answer.ON, Answer.HERE)


def wrong_answers(
    world: World, *, times: int, seed: int, staged: bool = False
) -> tuple[int, int, int]:
    """Return how many of so many targets get each wrong answer, in stages if `staged`.

    On (no setting gains on prompts of the kind), gain (none gains on those that are sent, and the
    answer is on, or on for these), off (one setting neither gains nor loses, the others lose by
    far).
    """
    generator = np.random.default_rng(seed)
    useless = [0.0] * world.settings
    nearly = [0.0, *[-1.0] * (world.settings - 1)]
    cases = [(useless, True, (Answer.ON,)), (useless, False, GAINS), (nearly, False, (Answer.OFF,))]
    found = []
    for truths, other_prompts, wrong in cases:
        logs = world.logs(generator, times, truths, other_prompts=other_prompts)
        kept = kept_in_stages(logs, truths, generator)[1] if staged else None
        found.append(sum(one in wrong for one in answers(logs, kept)))
    on, gain, off = found
    return on, gain, off


def right_answers(
    world: World, speedup: float, *, times: int, seed: int, staged: bool = False
) -> tuple[float, ...]:
    """Return how many of so many targets are found to gain, or to lose, as their best setting does.

    It has this speedup on the prompts that are sent, and the others spread evenly from there to
    half of it. If `staged`, the settings that each stage measures follow.
    """
    truths = math.log(speedup) - np.linspace(0, math.log(2), world.settings)
    generator = np.random.default_rng(seed)
    logs = world.logs(generator, times, truths.tolist())
    stages = kept_in_stages(logs, truths.tolist(), generator) if staged else ()
    found = answers(logs, stages[1] if stages else None)
    right = sum(one in (GAINS if speedup > 1 else (Answer.OFF,)) for one in found)
    return right, *(float(kept.sum(axis=1).mean()) for kept in stages)
