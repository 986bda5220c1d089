"""Decisions about one target's settings, from the means of their speedups.

The answer is

- *on*, if the interval of some setting for prompts like these lies above 1;
- *on for these prompts*, if one for these prompts does;
- *off*, if every setting's own interval lies below 1. All have to lose, so there is no choice among
  them to allow for (R. L. Berger, Multiparameter Hypothesis Testing and Acceptance Sampling,
  Technometrics 24, 1982);
- *little to gain*, if no setting's interval reaches above LITTLE;
- or *undecided*.

Where prompts come in kinds each kind has such an answer, from its own prompts. The target's is *on
by kind* if one kind gains and another one is *off* or of *little to gain*, and they differ on
prompts like these too; where the target is *on* a kind has to be *off*.

All intervals allow for another session, all but those of *off* for the choice among settings, and
those of kinds for the number of kinds.
`tests/benchmarks/interval_coverage.py` counts how often they are wrong, over all looks of a
campaign that is measured until it is decided.
"""

from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from specmoe.analysis.intervals import Mean, Session


class Answer(StrEnum):
    """What to do with a target."""

    ON = "switch on"
    BY_KIND = "on by kind"
    HERE = "on for these prompts"
    LOOPING = "on for looping text"
    OFF = "leave off at these γ"
    LITTLE = "little to gain"
    UNDECIDED = "undecided"
    UNKNOWN = "not known"


DECIDES = dict.fromkeys(Answer, "simultaneous")
DECIDES |= {Answer.ON: "other_prompts", Answer.OFF: "setting", Answer.UNKNOWN: ""}
"""The interval of `Ends` that decides an answer."""
GAINS = (Answer.ON, Answer.HERE)
DECIDED = (Answer.ON, Answer.OFF, Answer.LITTLE, Answer.LOOPING)
"""Answers that more repeats would not change."""


class Fate(StrEnum):
    """What becomes of a setting after a stage, see `contenders`."""

    CONTENDER = "contender"  # it is measured further
    PREDICTED = "beaten by prediction"
    SURPASSED = "other n-grams are predicted faster"
    BEATEN = "beaten"
    IDLE = "hardly drafts"
    DECIDED = "measured enough"  # its target's answer is decided, or more repeats would not help
    UNTRIED = "left out for lack of minutes"
    WAITING = "waits for the best of others"  # and may never join, see `contenders.join`


LITTLE = 1.1
"""A gain that is worth the memory which drafting takes."""
WORTHWHILE = 1 / 6
"""More repeats help if they narrow the interval that decides by this share of it."""


WRONG_AT_A_LOOK = 0.6
"""The share of wrong answers that each of several looks has of those of a single one. Looks differ
by blocks alone: in simulations without sessions six of them at 0.6 are wrong as often as one."""


def confidence_of_look(confidence: float, looks: int) -> float:
    """Return the level of intervals where a campaign may end after each of so many repeats."""
    return 1 - (1 - confidence) * (WRONG_AT_A_LOOK if looks > 1 else 1)


class Ends(NamedTuple):
    """Both ends of the intervals that decide, arrays (..., settings) of speedups."""

    simultaneous_low: np.ndarray
    simultaneous_high: np.ndarray
    other_prompts_low: np.ndarray
    other_prompts_high: np.ndarray
    setting_low: np.ndarray
    setting_high: np.ndarray


class Decision(NamedTuple):
    """What is known of targets, arrays (...) or (..., settings)."""

    ends: Ends
    answer: np.ndarray
    beaten: np.ndarray  # settings that need no further measurement
    more_helps: np.ndarray  # whether further repeats may bring another answer


def find_ends(
    these: Mean, others: Mean, confidence: float, choice: int, session: Session, among: int = 1
) -> Ends:
    """Return the ends of the intervals of means (..., settings); `choice`: among how many.

    `these` and `others` are on these prompts and on prompts like these; `among`: those of how many
    kinds of prompts are to hold at once.
    """
    wanted = (these, choice * among), (others, choice * among), (these, among)
    return Ends(*chain(*(mean.interval(confidence, every, session) for mean, every in wanted)))


def find_answer(ends: Ends) -> np.ndarray:
    """Return the answers that ends of intervals give."""
    on = (ends.other_prompts_low > 1).any(axis=-1)
    here = (ends.simultaneous_low > 1).any(axis=-1)
    off = (ends.setting_high < 1).all(axis=-1)
    little = (ends.simultaneous_high < LITTLE).all(axis=-1)
    cases = [Answer.ON, Answer.HERE, Answer.OFF, Answer.LITTLE]
    return np.select([on, here, off, little], cases, Answer.UNDECIDED)


def decide(
    these: Mean,
    others: Mean,
    behind: Mean,
    *,
    confidence: float,
    session: Session,
    choice: int,
    look: int = 1,
    looks: int = 1,
) -> Decision:
    """Return what is known of targets after a repeat, and what more repeats may add.

    All means are arrays (..., settings), moderated where there are several: of each setting on
    these prompts and on prompts like these, and of how far it is behind the fastest on these
    prompts (negative; 0 of the fastest). `choice` is among how many settings the best is chosen,
    those included that were dropped before. This is the `look`th repeat of at most `looks`.

    A setting is beaten if its interval lies below the fastest's, or below 1 by itself. More repeats
    help if they may narrow the interval that decides by WORTHWHILE: not where the session's part,
    or that of prompts, outweighs that of blocks.
    """
    confidence = confidence_of_look(confidence, looks)
    ends = find_ends(these, others, confidence, choice, session)
    answer = find_answer(ends)
    slower = behind.log + behind.reach(confidence, max(choice - 1, 1)) < 0
    beaten = slower | (ends.setting_high < 1)
    # With all repeats the part of blocks shrinks, and what it is known by grows.
    share = look / looks
    spared = np.square(these.error) * (1 - share)
    helped = []
    for mean in (these, others):
        error = np.sqrt(np.maximum(np.square(mean.error) - spared, 0))
        later = mean._replace(error=error, degrees=mean.degrees / share)
        now, then = (estimate.reach(confidence, choice, session) for estimate in (mean, later))
        # Where nothing was repeated yet there is no interval, and repeats give one.
        narrower = ~(then >= (1 - WORTHWHILE) * now) & (look < looks)
        helped.append((narrower & ~beaten).any(axis=-1))
    cases = [answer == Answer.UNDECIDED, answer == Answer.HERE]
    return Decision(ends, answer, beaten, np.select(cases, helped, False))


class ByKind(NamedTuple):
    """What is known by kind of prompts, arrays (..., kinds), (..., kinds, settings) or (...)."""

    ends: Ends
    answers: np.ndarray  # of kinds
    chosen: np.ndarray  # the place of each kind's setting
    differ: np.ndarray  # whether *on by kind* is the answer
    gain: list[Any]  # at all prompts like these, and its ends, if the kinds that gain draft


def decide_by_kind(
    these: Mean,
    others: Mean,
    shares: np.ndarray,
    *,
    confidence: float,
    session: Session,
    choice: int,
    on: Any,
    loops: Any = False,
    doubted: Any = False,
) -> ByKind:
    """Return what is known of settings on kinds of prompts, means (..., kinds, settings).

    `shares` are those that the kinds have of all prompts, `on` is whether the target is *on* with
    one setting for all. No gain is said of kinds whose text `loops`, and no loss of `doubted` ones.
    The setting of a kind is the fastest that gains on prompts like these, else on these, else the
    fastest. Intervals hold for all settings on all kinds, whichever are chosen.
    """
    kinds = len(shares)
    ends = find_ends(these, others, confidence, choice, session, kinds)
    fits = np.where(ends.other_prompts_low > 1, 2, ends.simultaneous_low > 1)
    fits = fits == fits.max(axis=-1, keepdims=True)
    chosen = np.where(fits, others.log, -np.inf).argmax(axis=-1)
    answers = find_answer(ends)
    answers = np.where(np.isin(answers, GAINS) & loops, Answer.LOOPING, answers)
    loses = np.isin(answers, (Answer.OFF, Answer.LITTLE))
    answers = np.where(loses & doubted, Answer.UNDECIDED, answers)
    gains, off = np.isin(answers, GAINS), answers == Answer.OFF
    off |= (answers == Answer.LITTLE) & ~np.asarray(on)[..., None]
    # Each kind beside each other one: what sessions have in common is the same on both.
    one, other = ([np.expand_dims(values, at) for values in others[:3]] for at in (-2, -3))
    ahead = Mean(one[0] - other[0], np.hypot(one[1], other[1]), np.minimum(one[2], other[2]))
    apart = ahead.log > ahead.reach(confidence, choice * kinds * (kinds - 1) // 2)
    apart = np.take_along_axis(apart, chosen[..., None, None], axis=-1)[..., 0]
    differ = (apart & gains[..., None] & off[..., None, :]).any(axis=(-1, -2))
    gain = []
    for values in (np.exp(others.log), ends.other_prompts_low, ends.other_prompts_high):
        own = np.take_along_axis(values, chosen[..., None], axis=-1)[..., 0]
        gain.append(np.exp(np.log(np.where(gains, own, 1.0)) @ shares))
    return ByKind(ends, answers, chosen, differ, gain)
