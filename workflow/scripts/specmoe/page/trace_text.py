"""The record of a demonstration as text for a terminal, round by round."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap

from specmoe.measure.trace import MARKS, Recording

WIDTH = 100
# Select Graphic Rendition: what ECMA-48 calls colours and weights.
_COLOURS = {"accepted": "32", "rejected": "31", "own": "1;33"}


def describe(recording: Recording, *, colour: bool) -> str:
    """Return the rounds of a record and their totals, coloured if the terminal can show it."""
    lines = [
        *_wrapped(
            f"Speculative decoding, round by round: {recording.draft} drafts for"
            f" {recording.target}, γ = {recording.gamma}, greedy"
        ),
        *_wrapped(f"Prompt, {recording.prompt_tokens} tokens: {recording.prompt_start}"),
        "",
        f"  {MARKS['accepted']} accepted: drafted, and the target writes it too",
        f"  {MARKS['rejected']} rejected: drafted, but the target writes another; and all after it",
        f"  {MARKS['own']} the target's own token, which each round adds",
        "",
        *_row("prompt", [("own", recording.word(recording.first))], "", colour),
    ]
    for number, one in enumerate(recording.rounds, start=1):
        counts = f"({one.accepted} of {len(one.drafted)} accepted)" if one.drafted else ""
        lines += _row(f"round {number}", recording.words(one), counts, colour)
    rounds = len(recording.rounds)
    lines += [
        "",
        *_wrapped(
            f"{len(recording.tokens)} tokens: the first from reading the prompt, the others from"
            f" {rounds} rounds. Drafted: {recording.drafted}. Accepted: {recording.accepted}."
        ),
        *_wrapped(
            "The rounds are those of the target's own greedy text, and nothing is timed: a"
            " demonstration, not a measurement. `snakemake advise` measures the gain."
        ),
    ]
    if recording.synthetic:
        lines += _wrapped("The models have random weights: the text is meaningless.")
    return "\n".join(lines) + "\n"


def _row(label: str, words: Iterable[tuple[str, str]], counts: str, colour: bool) -> list[str]:
    """Return a round, on as many lines as it takes."""
    label = f"{label:<10}"
    lines, width = [label], len(label)
    cells = [(f"{MARKS[fate]} {word}", _COLOURS[fate]) for fate, word in words]
    for cell, code in [*cells, (counts, "")]:
        if width + len(cell) > WIDTH:
            width = len(label)
            lines.append(" " * width)
        lines[-1] += (f"\x1b[{code}m{cell}\x1b[0m" if colour and code else cell) + "  "
        width += len(cell) + 2
    return [line.rstrip() for line in lines]


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def show_trace(trace: Path, log: Path) -> None:
    """Print a recorded demonstration, in colour on a terminal, and write it to a log without."""
    recording = Recording.read(trace)
    log.write_text(describe(recording, colour=False), encoding="utf-8")
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(describe(recording, colour=colour), end="")
