"""The record of a demonstration as text for a terminal, round by round."""

from collections.abc import Iterable
from textwrap import wrap

from specmoe.config.methods import METHODS, engine_types
from specmoe.engine.debug_log import Fate
from specmoe.measure.trace_record import Recording, visible
from specmoe.page.trace import MARKS, OWN, Part, percent, prompt_shown, rounds, wordless

WIDTH = 100
_INDENT = " " * 20
_WHO = {"draft": "draft", "target": "target", "replay": "↺ replay", "alone": "target"}
# Select Graphic Rendition: what ECMA-48 calls colours and weights.
_COLOURS = {
    MARKS[Fate.ACCEPTED]: "32",
    MARKS[Fate.REJECTED]: "31",
    MARKS[Fate.DROPPED]: "2",
    OWN: "1;33",
}


def describe(recording: Recording, *, colour: bool) -> str:
    """Return the rounds of a record and their totals, coloured if the terminal can show it."""
    lines = [*_head(recording), "", *_legend(recording), ""]
    lines += _row("prompt", "target", [f"{OWN} {recording.word(recording.tokens[0])}"], colour)
    chain = len(recording.demonstration.block.methods) > 1
    for one in rounds(recording):
        label = f"round {one.number}" if one.number else "no draft"
        for part in one.parts:
            lines += _row(label, _WHO[part.kind], _cells(part, chain=chain), colour)
            label = ""
    lines += ["", *_wrapped(f"Text: {visible(recording.text)}"), "", *_totals(recording)]
    return "\n".join(lines) + "\n"


def _head(recording: Recording) -> list[str]:
    what = recording.demonstration
    block = what.block
    lines = _wrapped(
        f"Speculative decoding, round by round: {what.target_label} ({block.target}), greedy"
    )
    file = f", file {block.draft_model}" if block.draft_model else ""
    lines += _wrapped(
        f"Drafts: {what.drafted_by}; llama-server's type {engine_types(block.methods)}{file}"
    )
    if what.synthetic:
        lines += _wrapped(
            "The models have random weights: the text is meaningless, but the rounds are real."
        )
    words = " ".join(map(visible, prompt_shown(recording).split()))
    lines += _wrapped(f"Prompt: {what.prompt_label}, {recording.prompt_tokens} tokens: {words}")
    return lines


def _legend(recording: Recording) -> list[str]:
    """Return the meaning of each sign that occurs."""
    lines = [
        f"{MARKS[Fate.ACCEPTED]} accepted: drafted, and the target would have chosen it",
        f"{MARKS[Fate.REJECTED]} rejected: drafted, but the target chooses another token",
        f"{MARKS[Fate.DROPPED]} dropped: drafted after a rejected token, and not checked",
        f"{OWN} the target's own choice: in place of the rejected token, or after the last one",
    ]
    if recording.counts.replays:
        undoes = recording.demonstration.undoes
        can = f"can undo only {undoes} tokens of" if undoes else "cannot undo half"
        lines += [
            f"↺ replay: a hybrid target {can} a pass, so the engine restores the state",
            "  from before the round and reads the remaining tokens again, for one more token",
        ]
    if wordless(recording):
        lines.append("⟨n⟩ token n, which is not text by itself")
    return [f"  {line}" for line in lines]


def _cells(part: Part, *, chain: bool) -> list[str]:
    """Return the tokens of a step and its result; in a chain a draft says which method drafted."""
    cells = [f"{chip.sign} {chip.word}" if chip.sign else chip.word for chip in part.chips]
    if part.by and chain:
        cells.append(f"({METHODS[part.by].words})")
    if part.kind in {"target", "replay"}:
        cells.append(f"({part.accepted} of {part.read} accepted)")
    return cells


def _row(label: str, who: str, cells: Iterable[str], colour: bool) -> list[str]:
    """Return a row of cells, on as many lines as it takes."""
    lines = [f"{label:<10}{who:<10}"]
    width = len(lines[0])
    for cell in cells:
        if width + len(cell) > WIDTH:
            lines.append(_INDENT)
            width = len(_INDENT)
        code = _COLOURS.get(cell.partition(" ")[0]) if colour else None
        lines[-1] += (f"\x1b[{code}m{cell}\x1b[0m" if code else cell) + "  "
        width += len(cell) + 2
    return [line.rstrip() for line in lines]


def _totals(recording: Recording) -> list[str]:
    counts, tokens = recording.counts, len(recording.tokens)
    steps = len(recording.rounds) - counts.rounds
    parts = [f"{counts.rounds} verifications", f"{counts.replays} replays"]
    if steps:
        parts.append(f"{steps} without a draft")
    same = recording.common_prefix
    if counts.drafted:
        accepted = (
            f"Accepted: {counts.accepted} of {counts.drafted} drafted tokens"
            f" ({percent(recording.acceptance_rate)})."
        )
    else:
        accepted = "Nothing was drafted: another prompt or other parameters may show more."
    if same == tokens:
        identity = f"Without a draft the target gives the same {tokens} tokens."
    else:
        identity = (
            f"Without a draft the target gives the same {same} tokens and then"
            f" {recording.word(recording.plain_tokens[same])} instead of"
            f" {recording.word(recording.tokens[same])}. A pass over several tokens rounds"
            " differently from a pass over one, which can decide near ties. For a campaign's runs,"
            " the audit checks whether a divergence is a near tie."
        )
    return [
        *_wrapped(
            f"{tokens} tokens: the first from the prompt's pass, {tokens - 1} from {counts.passes}"
            f" passes of the target ({', '.join(parts)}): {recording.tokens_per_pass:.2f} tokens"
            f" per pass. Without a draft they take {tokens - 1} passes."
        ),
        *_wrapped(accepted),
        *_wrapped(identity),
        *_wrapped(
            "This is one prompt, decoded once and not timed: a demonstration, not a measurement. A"
            " pass over many tokens costs more than a pass over one; `snakemake advise` measures"
            " the gain."
        ),
    ]


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
