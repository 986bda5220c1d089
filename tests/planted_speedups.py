"""Targets with planted speedups: do the kinds of interval hold the truth, are answers right?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmoe.analysis.advice import Answer, decide
from specmoe.analysis.intervals import Mean, of_blocks, of_blocks_and_prompts
from specmoe.config.schema import Statistics

STATISTICS = Statistics()
CONFIDENCE = STATISTICS.confidence


@dataclass(frozen=True)
class World:
    """Targets with planted speedups, all of whose settings were measured on the same prompts."""

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
        looks: int = 1,
    ) -> np.ndarray:
        """Return logarithms of speedup, an array (times, settings, looks * blocks, prompts).

        `truths` are those of the settings on the prompts that are sent, or on prompts of their kind
        if `other_prompts`.
        """

        def effects(deviation: float, blocks: int, prompts: int) -> np.ndarray:
            own, common = (
                generator.standard_normal((times, settings, blocks, prompts))
                for settings in (self.settings, 1)
            )
            return deviation * (math.sqrt(1 - self.shared) * own + math.sqrt(self.shared) * common)

        blocks = looks * self.blocks
        prompt = effects(self.prompt, 1, self.prompts)
        if not other_prompts:
            prompt -= prompt.mean(axis=-1, keepdims=True)
        session = self.session * generator.standard_normal((times, 1, 1, 1))
        run = self.run * generator.standard_normal((times, self.settings, blocks, self.prompts))
        return (
            np.reshape(truths, (-1, 1, 1)) + session + effects(self.block, blocks, 1) + prompt + run
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
        "these prompts": of_blocks(these.mean(axis=-1)),
        "prompts like these": of_blocks_and_prompts(others),
    }
    shares = {}
    for kind, mean in means.items():
        own, best = (
            abs(mean.log) <= mean.reach(CONFIDENCE, among) for among in (1, world.settings)
        )
        shares |= {kind: own.mean(), f"{kind}, the best": best.all(axis=-1).mean()}
    return shares


def answers(logs: np.ndarray) -> list[Answer]:
    """Return the answer to each target of `World.logs`."""
    these, others = of_blocks(logs.mean(axis=-1)), of_blocks_and_prompts(logs)
    settings = logs.shape[1]

    def end(mean: Mean, side: int, among: int) -> np.ndarray:
        return np.exp(mean.log + side * mean.reach(CONFIDENCE, among, STATISTICS.session_sd))

    ends = end(these, -1, settings), end(others, -1, settings), end(these, 1, 1)
    return [decide(*of_target) for of_target in zip(*ends, strict=True)]


GAINS = (Answer.ON, Answer.HERE)


def wrong_answers(world: World, *, times: int, seed: int) -> np.ndarray:
    """Return how many of so many targets get a wrong answer: at the first look, and at two.

    Columns: on (no setting gains on prompts of the kind), gain (none gains on those that are sent,
    and the answer is on, or on for these), off (one setting neither gains nor loses, the others
    lose by far).
    """
    generator = np.random.default_rng(seed)
    useless = [0.0] * world.settings
    nearly = [0.0, *[-1.0] * (world.settings - 1)]
    cases = [(useless, True, (Answer.ON,)), (useless, False, GAINS), (nearly, False, (Answer.OFF,))]
    found = []
    for truths, other_prompts, wrong in cases:
        logs = world.logs(generator, times, truths, other_prompts=other_prompts, looks=2)
        first, second = answers(logs[:, :, : world.blocks]), answers(logs)
        again = [
            two if one == Answer.UNDECIDED else one for one, two in zip(first, second, strict=True)
        ]
        found.append([sum(one in wrong for one in look) for look in (first, again)])
    return np.transpose(found)


def right_answers(world: World, speedup: float, *, times: int, seed: int) -> int:
    """Return how many of so many targets are found to gain, or to lose, as their best setting does.

    It has this speedup on the prompts that are sent, and the others spread evenly from there to
    half of it.
    """
    truths = math.log(speedup) - np.linspace(0, math.log(2), world.settings)
    found = answers(world.logs(np.random.default_rng(seed), times, truths))
    return sum(one in (GAINS if speedup > 1 else (Answer.OFF,)) for one in found)
