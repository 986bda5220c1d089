"""The record of a demonstration, step by step, as `paper/site/trace.html.j2` shows it.

A step is one part of a round: the draft, the pass that verifies it, or a replay; or all passes
between two drafts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

from specmoe.config.methods import Method, engine_types, is_ngram
from specmoe.engine.debug_log import Fate, Round
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
    """One step: its kind ("draft", "target", "replay" or "alone"), its tokens, and its result."""

    kind: str
    chips: tuple[Chip, ...]
    accepted: int
    read: int
    restored: bool
    by: Method | None = None  # that drafted


@dataclass(frozen=True)
class RoundParts:
    """The steps of one round, or of all between two drafts, which have no number."""

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
        "drafted_by": what.drafted_by,
        "methods": what.block.methods,
        "parameters": what.parameters,
        "types": engine_types(what.block.methods),
        "undoes": what.undoes,
        "prompt": prompt_shown(recording),
        "prompt_tokens": recording.prompt_tokens,
        "synthetic": what.synthetic,
        "rounds": list(rounds(recording)),
        "words": list(_words(recording)),
        "counts": counts,
        "singles": len(recording.rounds) - counts.rounds,
        "tokens": tokens,
        "tokens_per_pass": f"{recording.tokens_per_pass:.2f}",
        "acceptance_rate": percent(recording.acceptance_rate),
        "same": same,
        "instead": (
            (recording.word(recording.plain_tokens[same]), recording.word(recording.tokens[same]))
            if same < tokens
            else None
        ),
        "marks": {fate.value: mark for fate, mark in MARKS.items()} | {"own": OWN},
        "wordless": wordless(recording),
        "probable": any(
            guess.probability is not None for one in recording.rounds for guess in one.drafted
        ),
        "looked_up": any(map(is_ngram, what.block.methods)),
    }


def percent(rate: float | None) -> str:
    """Return an acceptance rate in percent; a dash if nothing was drafted."""
    return "–" if rate is None else f"{rate:.1%}"


def prompt_shown(recording: Recording) -> str:
    """Return the prompt's text, or its beginning if it is long."""
    text = recording.prompt_text
    return text if len(text) <= _PROMPT_SHOWN else f"{text[:_PROMPT_SHOWN]}…"


def wordless(recording: Recording) -> bool:
    """Return whether the record has tokens that are no text by themselves."""
    return any("⟨" in recording.word(token) for token in recording.token_texts)


def rounds(recording: Recording) -> Iterator[RoundParts]:
    """Yield the steps of each round; passes without a draft that follow one another are one."""
    numbers = count(1)
    for drafted, some in _stretches(recording):
        yield RoundParts(
            number=next(numbers) if drafted else None,
            parts=tuple(_parts(recording, some)),
            tokens=sum(len(one.tokens) for one in some),
            passes=sum(len(one.passes) for one in some),
        )


def _stretches(recording: Recording) -> Iterator[tuple[bool, list[Round]]]:
    """Yield each round with a draft, and together those between two drafts."""
    for drafted, rounds_ in groupby(recording.rounds, key=lambda one: bool(one.drafted)):
        if drafted:
            yield from ((True, [one]) for one in rounds_)
        else:
            yield False, list(rounds_)


def _chance(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.0%}"


def _parts(recording: Recording, some: list[Round]) -> Iterator[Part]:
    """Yield the steps of a round, or the one of passes without a draft."""
    word = recording.word
    one = some[0]
    if not one.drafted:
        chips = tuple(Chip(OWN, word(each.passes[0].own), "own") for each in some)
        yield Part("alone", chips, 0, 0, restored=False)
        return
    chips = tuple(
        Chip("", word(guess.token), "drafted", _chance(guess.probability)) for guess in one.drafted
    )
    yield Part("draft", chips, 0, len(chips), restored=False, by=one.method)
    for place, pass_ in enumerate(one.passes):
        read = zip(pass_.fates, pass_.read, strict=True)
        chips = tuple(Chip(MARKS[fate], word(token), fate) for fate, token in read)
        yield Part(
            "replay" if place else "target",
            (*chips, Chip(OWN, word(pass_.own), "own")),
            pass_.accepted,
            len(pass_.read),
            pass_.restored,
        )


def _words(recording: Recording) -> Iterator[Word]:
    """Yield the tokens of the text; those of a round appear with its last step."""
    yield Word(recording.word(recording.tokens[0]), "own", 0)
    step = -1
    for drafted, some in _stretches(recording):
        step += 1 + len(some[0].passes) if drafted else 1
        for one in some:
            for place, token in enumerate(one.tokens):
                fate = Fate.ACCEPTED if place < one.accepted else "own"
                yield Word(recording.word(token), fate, step)
