"""The record of a demonstration, step by step, as `paper/site/trace.html.j2` shows it.

A step is one part of a round: the draft, the pass that verifies it, or a replay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from specmoe.engine.debug_log import Fate, Pass, Round
from specmoe.measure.trace_record import Recording

MARKS = {Fate.ACCEPTED: "✓", Fate.REJECTED: "✗", Fate.DROPPED: "·"}
OWN = "→"
# The first characters of the prompt are shown, since prompts may be long.
_PROMPT_SHOWN = 300


@dataclass(frozen=True)
class Chip:
    """A token as it is drawn: its sign, its word, and its fate."""

    sign: str
    word: str
    fate: str  # "drafted", "own" or one of Fate
    probability: str = ""


@dataclass(frozen=True)
class Part:
    """One step: its kind ("draft", "target" or "replay"), its tokens, and its result."""

    kind: str
    chips: tuple[Chip, ...]
    accepted: int
    read: int
    restored: bool


@dataclass(frozen=True)
class RoundParts:
    """The steps of one round; one without a draft has no number."""

    number: int | None
    parts: tuple[Part, ...]
    tokens: int  # that it gave
    passes: int


@dataclass(frozen=True)
class Word:
    """A token of the text, and the step, counted from 0, that it appears with."""

    word: str
    fate: str
    step: int


def trace_context(recording: Recording) -> dict[str, Any]:
    """Return the variables of the stepper's template, all computed from the record."""
    what, counts, tokens = recording.demonstration, recording.counts, len(recording.tokens)
    same = recording.common_prefix
    return {
        "target": what.target_label,
        "draft": what.draft_label,
        "gamma": what.side.gamma,
        "prompt": prompt_shown(recording),
        "prompt_tokens": recording.prompt_tokens,
        "synthetic": what.synthetic,
        "rounds": list(rounds(recording)),
        "words": list(_words(recording)),
        "counts": counts,
        "singles": len(recording.rounds) - counts.rounds,
        "tokens": tokens,
        "tokens_per_pass": f"{recording.tokens_per_pass:.2f}",
        "acceptance_rate": f"{recording.acceptance_rate:.1%}",
        "same": same,
        "instead": (
            (recording.word(recording.plain_tokens[same]), recording.word(recording.tokens[same]))
            if same < tokens
            else None
        ),
        "marks": {fate.value: mark for fate, mark in MARKS.items()} | {"own": OWN},
        "wordless": wordless(recording),
        "untold": any(one.own is None for round_ in recording.rounds for one in round_.passes),
    }


def prompt_shown(recording: Recording) -> str:
    """Return the prompt's text, or its beginning if it is long."""
    text = recording.prompt_text
    return text if len(text) <= _PROMPT_SHOWN else f"{text[:_PROMPT_SHOWN]}…"


def wordless(recording: Recording) -> bool:
    """Return whether the record has tokens that are no text by themselves."""
    return any("⟨" in recording.word(token) for token in recording.token_texts)


def rounds(recording: Recording) -> Iterator[RoundParts]:
    """Yield the steps of each round."""
    numbers = count(1)
    for one in recording.rounds:
        yield RoundParts(
            number=next(numbers) if one.drafted else None,
            parts=tuple(_parts(recording, one)),
            tokens=len(one.tokens),
            passes=len(one.passes),
        )


def _parts(recording: Recording, one: Round) -> Iterator[Part]:
    if one.drafted:
        chips = [
            Chip("", recording.word(guess.token), "drafted", f"{guess.probability:.0%}")
            for guess in one.drafted
        ]
        yield Part("draft", tuple(chips), 0, len(chips), restored=False)
    for place, pass_ in enumerate(one.passes):
        yield Part(
            "replay" if place else "target",
            tuple(_chips(recording, pass_)),
            pass_.accepted,
            len(pass_.read),
            pass_.restored,
        )


def _chips(recording: Recording, one: Pass) -> Iterator[Chip]:
    for fate, token in zip(one.fates, one.read, strict=True):
        yield Chip(MARKS[fate], recording.word(token), fate)
    yield Chip(OWN, recording.word(one.own), "own")


def _words(recording: Recording) -> Iterator[Word]:
    """Yield the tokens of the text; those of a round appear with its last step."""
    yield Word(recording.word(recording.tokens[0]), "own", 0)
    step = -1
    for one in recording.rounds:
        step += bool(one.drafted) + len(one.passes)
        for place, token in enumerate(one.tokens):
            fate = Fate.ACCEPTED if place < one.accepted else "own"
            yield Word(recording.word(token), fate, step)
