"""The record of a demonstration as text for a terminal, round by round."""

from collections.abc import Iterable
from textwrap import wrap

from specmoe.engine.debug_log import Fate, Pass, Round
from specmoe.measure.trace_record import UNKNOWN, Recording, visible

WIDTH = 100
MARKS = {Fate.ACCEPTED: "✓", Fate.REJECTED: "✗", Fate.DROPPED: "·"}
OWN = "→"
# Of the prompt's text, which may be long, so many characters are shown.
_PROMPT_SHOWN = 300
_INDENT = " " * 20
# Select Graphic Rendition: what ECMA-48 calls colours and weights.
_COLOURS = {
    MARKS[Fate.ACCEPTED]: "32",
    MARKS[Fate.REJECTED]: "31",
    MARKS[Fate.DROPPED]: "2",
    OWN: "1;33",
}


def describe(recording: Recording, *, colour: bool) -> str:
    """Return the rounds of a record, and what they come to; coloured for terminals that can."""
    lines = [*_head(recording), "", *_legend(recording), ""]
    lines += _row("prompt", "target", [f"{OWN} {recording.word(recording.tokens[0])}"], colour)
    number = 0
    for one in recording.rounds:
        number += bool(one.drafted)
        lines += _round(recording, one, f"round {number}" if one.drafted else "no draft", colour)
    lines += ["", *_wrapped(f"Text: {visible(recording.text)}"), "", *_totals(recording)]
    return "\n".join(lines) + "\n"


def prompt_shown(recording: Recording) -> str:
    """Return the prompt's text, or its beginning if it is long."""
    text = recording.prompt_text
    return text if len(text) <= _PROMPT_SHOWN else f"{text[:_PROMPT_SHOWN]}…"


def _head(recording: Recording) -> list[str]:
    what = recording.demonstration
    block = what.block
    lines = _wrapped(
        f"Speculative decoding, round by round: {what.target_label} ({block.target}) with draft"
        f" {what.draft_label} ({block.draft}), γ = {block.gamma}, greedy"
    )
    if what.synthetic:
        lines += _wrapped(
            "Models with random weights: the text means nothing, the rounds are the engine's own."
        )
    words = " ".join(map(visible, prompt_shown(recording).split()))
    lines += _wrapped(f"Prompt: {what.prompt_label}, {recording.prompt_tokens} tokens: {words}")
    return lines


def _legend(recording: Recording) -> list[str]:
    """Return what the signs mean, of those that occur."""
    lines = [
        f"{MARKS[Fate.ACCEPTED]} drafted, and what the target would have chosen: accepted",
        f"{MARKS[Fate.REJECTED]} drafted, and not what the target chooses: rejected",
        f"{MARKS[Fate.DROPPED]} drafted after a rejected token: dropped unasked",
        f"{OWN} the target's own choice: in place of the rejected token, or after the last one",
    ]
    if recording.counts.replays:
        lines += [
            "↺ replay: a hybrid target cannot take back half a pass, so its state from before the",
            "  round is restored and the tokens that stand are read again, for one more token",
        ]
    if any(one.own is None for round_ in recording.rounds for one in round_.passes):
        lines.append(f"{UNKNOWN} a token that a replay rejected again; the log does not tell it")
    if any("⟨" in recording.word(token) for token in recording.token_texts):
        lines.append("⟨n⟩ token n, which is no text by itself")
    return [f"  {line}" for line in lines]


def _round(recording: Recording, one: Round, label: str, colour: bool) -> list[str]:
    lines = []
    if one.drafted:
        words = [recording.word(guess.token) for guess in one.drafted]
        lines += _row(label, "draft", words, colour)
    for number, pass_ in enumerate(one.passes):
        lines += _row(
            "" if one.drafted else label,
            "↺ replay" if number else "target",
            _cells(recording, pass_),
            colour,
        )
    return lines


def _cells(recording: Recording, one: Pass) -> list[str]:
    cells = [
        f"{MARKS[fate]} {recording.word(token)}"
        for fate, token in zip(one.fates, one.read, strict=True)
    ]
    cells.append(f"{OWN} {recording.word(one.own)}")
    if one.read:
        cells.append(f"({one.accepted} of {len(one.read)} accepted)")
    return cells


def _row(label: str, who: str, cells: Iterable[str], colour: bool) -> list[str]:
    """Return a row of cells, on as many lines as it takes."""
    lines = [f"{label:<10}{who:<10}"]
    width = len(lines[0])
    for cell in cells:
        if width + len(cell) > WIDTH:
            lines.append(_INDENT)
            width = len(_INDENT)
        lines[-1] += (_painted(cell) if colour else cell) + "  "
        width += len(cell) + 2
    return [line.rstrip() for line in lines]


def _painted(cell: str) -> str:
    code = _COLOURS.get(cell.partition(" ")[0])
    return f"\x1b[{code}m{cell}\x1b[0m" if code else cell


def _totals(recording: Recording) -> list[str]:
    counts, tokens = recording.counts, len(recording.tokens)
    steps = len(recording.rounds) - counts.rounds
    parts = [f"{counts.rounds} verifications", f"{counts.replays} replays"]
    parts += [f"{steps} without a draft"] * bool(steps)
    same = recording.common_prefix
    if same == tokens:
        identity = f"Without a draft the target gives the same {tokens} tokens."
    else:
        identity = (
            f"Without a draft the target gives the same {same} tokens and then"
            f" {recording.word(recording.plain_tokens[same])} instead of"
            f" {recording.word(recording.tokens[same])}. A pass over several tokens rounds"
            " otherwise than a pass over one, which decides near ties; of a campaign's runs"
            " the audit asks whether it was one."
        )
    return [
        *_wrapped(
            f"{tokens} tokens: the first from the prompt's pass, {tokens - 1} from {counts.passes}"
            f" passes of the target ({', '.join(parts)}): {recording.tokens_per_pass:.2f} tokens a"
            f" pass. Without a draft they take {tokens - 1} passes."
        ),
        *_wrapped(
            f"Accepted: {counts.accepted} of {counts.drafted} drafted tokens"
            f" ({recording.acceptance_rate:.1%})."
        ),
        *_wrapped(identity),
        *_wrapped(
            "One prompt, once, and no time was taken: a demonstration, no measurement. Passes over"
            " many tokens cost more than passes over one; what is gained, `snakemake advise` tells."
        ),
    ]


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
