"""Simulated targets of known speedups, and how often intervals and answers are right on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri

from specmoe.analysis import intervals
from specmoe.analysis.decision import GAINS, LITTLE, Answer, decide, decide_by_kind
from specmoe.analysis.intervals import Mean, Stratum, moderate
from specmoe.analysis.noise import prior, session_of
from specmoe.config.schema import Statistics

CONFIDENCE = Statistics().confidence
SESSION = session_of(Statistics())
PIECE = 5  # blocks of a recorded series that follow one another
NO_GAINS = (Answer.OFF, Answer.LITTLE)


@dataclass(frozen=True)
class World:
    """Targets with known speedups, all of whose settings are measured on the same prompts.

    All are standard deviations of the logarithm of speedup.
    """

    run: float = round(prior("blocks").value, 2)  # of a run beside its baseline, as usual
    prompt: float = 0.1  # between prompts; half of its square is the same for all settings
    prompts: int = 15
    settings: int = 8
    repeats: int = 6
    # Blocks are of all prompts and differ by this much; None: each is one prompt.
    block: float | None = None
    session: float = 0.05  # of all settings of a target together
    own: float = 0.03  # of each setting, in a session
    kinds: float = 0.0  # the share of prompts' squares that prompts of a kind have in common
    alike: float = 0.0  # the correlation of a block with the one before
    drift: float = 0.0  # from the first block to the last
    heavy: bool = False  # runs have the tails of Student's t with three degrees of freedom
    shared: float = 0.2  # the share of the squares of runs and blocks that settings have in common
    unlike: float = 0.3  # of the logarithm of the settings' own deviations
    # Residuals that were recorded, in order of time, an array (settings, blocks) of each target.
    recorded: Sequence[np.ndarray] = ()

    @cached_property
    def of_kind(self) -> np.ndarray:
        """The kind of each prompt: three of each."""
        return np.arange(self.prompts) // 3

    def sample(
        self,
        generator: np.random.Generator,
        times: int,
        truths: Any,
        *,
        other_prompts: bool = False,
    ) -> "Sample":
        """Return logarithms of speedup of so many targets.

        `truths` are those of the settings, or of each on each kind of prompts, on the prompts that
        are sent, or on prompts of their kind if `other_prompts`.
        """
        shape = self.repeats, self.prompts
        at = np.array([generator.permutation(self.prompts) for _ in range(self.repeats)])
        at += self.prompts * np.arange(self.repeats)[:, None]
        noise = self._noise(generator, times, self.run, at.size)[..., at]
        if self.block is not None:
            noise += self._noise(generator, times, self.block, self.repeats)[..., None]
            at = np.broadcast_to(np.arange(self.repeats)[:, None], shape)
        truths = np.reshape(truths, (self.settings, -1))
        truths = np.broadcast_to(truths, (self.settings, self.of_kind[-1] + 1))
        logs = truths[:, None, self.of_kind] + noise + self.drift * (at / at.max() - 0.5)
        logs += self._prompts(generator, times, other_prompts=other_prompts)[:, :, None]
        logs += self.session * generator.standard_normal((times, 1, 1, 1))
        logs += self.own * generator.standard_normal((times, self.settings, 1, 1))
        return Sample(logs, at, self.of_kind, whole=self.block is not None)

    def _prompts(
        self, generator: np.random.Generator, times: int, *, other_prompts: bool
    ) -> np.ndarray:
        total = np.zeros((times, self.settings, self.prompts))
        for settings in (self.settings, 1):
            each, kinds = (
                generator.standard_normal((times, settings, count))
                for count in (self.prompts, self.of_kind[-1] + 1)
            )
            both = math.sqrt(1 - self.kinds) * each
            total = total + both + math.sqrt(self.kinds) * kinds[..., self.of_kind]
        total *= self.prompt / math.sqrt(2)
        return total if other_prompts else total - total.mean(axis=-1, keepdims=True)

    def _noise(
        self, generator: np.random.Generator, times: int, deviation: float, number: int
    ) -> np.ndarray:
        """Return noise (times, settings, number) in order of time."""
        if self.recorded:
            return self._recorded(generator, times, number)
        total = np.zeros((times, self.settings, number))
        for settings, share in ((self.settings, 1 - self.shared), (1, self.shared)):
            shape = times, settings, number
            white = generator.standard_normal(shape)
            if self.heavy:
                white = generator.standard_t(3, shape) / math.sqrt(3)
            for place in range(1, number if self.alike else 0):
                fresh = math.sqrt(1 - self.alike**2) * white[..., place]
                white[..., place] = self.alike * white[..., place - 1] + fresh
            total = total + math.sqrt(share) * white
        unlike = generator.standard_normal((times, self.settings, 1))
        scaled: np.ndarray = deviation * np.exp(self.unlike * unlike) * total
        return scaled

    def _recorded(self, generator: np.random.Generator, times: int, number: int) -> np.ndarray:
        """Return pieces of the series of some target, one behind the other, each from anywhere."""
        drawn = []
        for _ in range(times):
            series = self.recorded[generator.integers(len(self.recorded))]
            starts = generator.integers(series.shape[1], size=-(-number // PIECE))
            chosen = series[generator.integers(len(series), size=self.settings)]
            places = np.add.outer(starts, np.arange(PIECE)).ravel()[:number]
            drawn.append(chosen[:, places % series.shape[1]])
        return np.array(drawn)


def farthest(part: str) -> float:
    """Return how far sessions may be apart by shipped pairs, as surely as answers allow for."""
    value, degrees = prior("sessions", part)
    return value * math.sqrt(degrees / chdtri(degrees, intervals.SESSIONS))


WORLDS = {
    "quiet": World(run=0.04),
    "as usual": World(),
    "noisy": World(run=0.2),
    "heavy tails": World(heavy=True),
    "blocks alike, 0.3": World(alike=0.3),
    "blocks alike, 0.7": World(alike=0.7),
    "drift of 5 %": World(drift=0.05),
    "prompts differ": World(prompt=0.3),
    "prompts in kinds": World(prompt=0.2, kinds=0.7),
    "5 prompts": World(prompts=5),
    "30 prompts": World(prompts=30),
    "1 setting": World(settings=1),
    "29 settings": World(settings=29),
    "sessions of 3 %": World(session=0.03, own=0.0),
    "sessions as far apart as may be": World(session=farthest("common")),
    "settings as far apart as may be": World(own=farthest("own")),
    "sessions of 8 %": World(session=0.08, own=0.0),
    "8 %, and 3 % of each setting": World(session=0.08),
}


class Sample(NamedTuple):
    """Logarithms of speedup, an array (times, settings, repeats, prompts), and their blocks."""

    logs: np.ndarray
    at: np.ndarray  # the place of each block in time (repeats, prompts)
    kinds: np.ndarray  # of the prompts
    whole: bool  # whether a block has all prompts

    def strata(self) -> list[Stratum]:
        """Return the strata of blocks."""
        if self.whole:
            return [Stratum.complete(self.logs, self.at[:, 0], self.kinds)]
        return [
            Stratum.complete(self.logs[..., one : one + 1], self.at[:, one], self.kinds[[one]])
            for one in range(len(self.kinds))
        ]

    def these(self) -> Mean:
        """Return the moderated means (times, settings) on these prompts."""
        return moderate(intervals.on_these_prompts(self.strata()))

    def behind(self, kept: np.ndarray) -> Mean:
        """Return how far settings are behind the fastest of those that are kept."""
        means = self.logs.mean(axis=(-1, -2))
        best = np.where(kept, means, -np.inf).argmax(axis=-1)[:, None, None, None]
        return self._replace(logs=self.logs - np.take_along_axis(self.logs, best, axis=1)).these()


def held(world: World, repeats: int, *, times: int, seed: int) -> dict[str, float]:
    """Return the share of so many targets without a gain at which each kind of interval holds 1.

    The kinds of the best have to hold for all settings at once. Without sessions.
    """
    generator = np.random.default_rng(seed)
    world = replace(world, session=0.0, own=0.0, repeats=repeats)
    useless = [0.0] * world.settings
    shares = {}
    for kind in ("these prompts", "prompts like these"):
        other = kind == "prompts like these"
        sample = world.sample(generator, times, useless, other_prompts=other)
        mean = sample.these()
        mean = intervals.on_such_prompts(sample.strata(), mean) if other else mean
        for name, among in ((kind, 1), (f"{kind}, the best", world.settings)):
            holds = abs(mean.log) <= mean.reach(CONFIDENCE, among)
            shares[name] = float((holds if among == 1 else holds.all(axis=-1)).mean())
    return shares


class Outcome(NamedTuple):
    """What a campaign of each target ends with; arrays (times) and, of kept, (times, settings)."""

    answers: np.ndarray
    repeats: np.ndarray
    kept: np.ndarray

    def share(self, *answers: Answer) -> float:
        """Return in what share of targets one of the answers is given."""
        return float(np.isin(self.answers, answers).mean())


def until_decided(sample: Sample) -> Outcome:
    """Return what becomes of targets that are measured repeat by repeat until they are decided."""
    times, settings, looks, _ = sample.logs.shape
    kept, done = np.ones((times, settings), bool), np.zeros(times, bool)
    answers = np.full(times, Answer.UNDECIDED, object)
    repeats = np.zeros(times)
    for look in range(1, looks + 1):
        seen = sample._replace(logs=sample.logs[:, :, :look], at=sample.at[:look])
        these = seen.these()
        means = these, intervals.on_such_prompts(seen.strata(), these), seen.behind(kept)
        found = decide(
            *(_without(mean, ~kept) for mean in means),
            confidence=CONFIDENCE,
            session=SESSION,
            choice=settings,
            look=look,
            looks=looks,
        )
        repeats += ~done
        answers = np.where(done, answers, found.answer)
        left = kept & ~found.beaten
        kept = np.where(done[:, None] | ~left.any(axis=-1, keepdims=True), kept, left)
        done |= ~found.more_helps
    return Outcome(answers, repeats, kept)


def _without(mean: Mean, dropped: np.ndarray) -> Mean:
    """Return means where settings that were beaten surely lose."""
    log, error = np.where(dropped, -9.0, mean.log), np.where(dropped, 1e-9, mean.error)
    return mean._replace(log=log, error=error)


def wrong_answers(world: World, *, times: int, seed: int) -> dict[str, float]:
    """Return in what share of so many targets each wrong answer is given.

    on: no setting gains on prompts of the kind; gain: none gains on those that are sent, and the
    answer is a gain on them or on others; no gain: one setting gains more than a tenth, and the
    others lose by far. dropped, beside them: that setting was measured no further.
    """
    generator, outcome = np.random.default_rng(seed), {}
    useless = [0.0] * world.settings
    gaining = [math.log(LITTLE), *[-0.3] * (world.settings - 1)]
    cases = {"on": (useless, True), "gain": (useless, False), "no gain": (gaining, False)}
    for name, (truths, other) in cases.items():
        sample = world.sample(generator, times, truths, other_prompts=other)
        outcome[name] = until_decided(sample)
    return {
        "on": outcome["on"].share(Answer.ON),
        "gain": outcome["gain"].share(*GAINS),
        "no gain": outcome["no gain"].share(*NO_GAINS),
        "dropped": float((~outcome["no gain"].kept[:, 0]).mean()),
    }


def right_answers(world: World, speedup: float, *, times: int, seed: int) -> tuple[float, float]:
    """Return in what share of so many targets the answer is right, and the mean of repeats.

    The best setting has this speedup on the prompts that are sent, and the others spread evenly
    from there to half of it. A gain is right above 1, *off* or *little to gain* below.
    """
    truths = math.log(speedup) - np.linspace(0, math.log(2), world.settings)
    sample = world.sample(np.random.default_rng(seed), times, truths.tolist())
    found = until_decided(sample)
    right = found.share(*(GAINS if speedup > 1 else NO_GAINS))
    return right, float(found.repeats.mean())


def found_by_kind(
    world: World, speedups: Sequence[float], repeats: int, *, times: int, seed: int
) -> tuple[float, float]:
    """Return in what share of so many targets *on by kind* is said, and how many of its gains hold.

    The best setting has these speedups on the kinds of prompts, and the others spread evenly from
    there to half of it. A gain is that of the settings that are chosen; NaN where there is none.
    """
    truths = np.log(speedups) - np.linspace(0, math.log(2), world.settings)[:, None]
    world, kinds = replace(world, repeats=repeats), len(speedups)
    sample = world.sample(np.random.default_rng(seed), times, truths, other_prompts=True)
    # Settings on a kind are as further settings, so that variances are shrunk to those of all.
    logs = sample.logs.reshape(times, world.settings, repeats, kinds, -1).transpose(0, 3, 1, 2, 4)
    flat = logs.reshape(times, -1, *logs.shape[3:])
    of_kinds = Sample(flat, sample.at[:, : flat.shape[-1]], np.zeros(flat.shape[-1]), whole=False)
    these = of_kinds.these()
    such = intervals.on_such_prompts(of_kinds.strata(), these)
    such = such._replace(repeated=True, residuals=np.zeros((*flat.shape[:2], 0)), strata=())
    shape = 3, times, kinds, world.settings
    others = Mean(*np.reshape(moderate(such)[:3], shape))
    found = decide_by_kind(
        Mean(*np.reshape(these[:3], shape)) if repeats > 1 else others,
        others,
        np.full(kinds, 1 / kinds),
        confidence=CONFIDENCE,
        session=SESSION,
        choice=world.settings,
        on=False,
    )
    own = truths[found.chosen, np.arange(kinds)]
    truth = np.exp(np.where(np.isin(found.answers, GAINS), own, 0).mean(axis=-1))
    holds = ((found.gain[1] <= truth) & (truth <= found.gain[2]))[found.differ]
    return float(found.differ.mean()), float(holds.mean()) if len(holds) else math.nan
