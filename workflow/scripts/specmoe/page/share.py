"""What one pastes elsewhere: a picture that says itself what it is of, and a table in Markdown.

Both name the machine, the models, the engine, the day and what the audit says, since the page that
says so is not there where they are pasted.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.image import imread
from numpy.typing import NDArray

from specmoe.analysis.advice import Answer
from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import (
    Record,
    advised_targets,
    count_check,
    ordered_models,
    records,
    usual_cells,
    whole_audit,
)
from specmoe.config.backend import Backend
from specmoe.figures.figures import FIGURES, PNG_DPI, drawn
from specmoe.figures.style import WIDTH_IN, applied
from specmoe.page.templates import plain
from specmoe.paper import latex
from specmoe.paper.macro_list import day, listed
from specmoe.paper.tables import short_commits

# The first of them that has anything to show is the picture.
PICTURES = ("speedup_by_gamma", "prompt_lengths", "break_even", "verification_cost", "throughput")
_CAPTION_PT = 7
_LETTERS_AN_INCH = 19  # at that size
_LINE_IN = 0.14
_HEADS = ["Target", "Draft", "γ", "Speedup", "Accepted", "tok/s with draft", "tok/s without"]
# What Markdown, or a site that shows it, takes for a mark, a link or a mention.
_MARKS = re.compile(r"[\\`*_\[\]<>|~&$#@^]|:(?=//)")
_ANSWERS = {
    Answer.ON: "switch it on",
    Answer.OFF: "leave it off",
    Answer.UNKNOWN: "not known",
}


def caption(analysis: Analysis) -> str:
    """Return in a few sentences what the numbers are of, and what the audit says of them."""
    campaign = records(analysis.campaign)[0]
    days = dict.fromkeys(day(campaign[key]) for key in ("started_at", "ended_at"))
    machine = str(campaign["host_chip"])
    if campaign["backend"] != Backend.CPU and pd.notna(gpu := campaign.get("host_gpu")):
        # On one chip the GPU is named by it.
        machine = str(gpu) if machine in str(gpu) else f"{machine}, {gpu}"
    sentences = [
        f"Campaign {analysis.name}: {_models(analysis)}.",
        f"{machine}, backend {campaign['backend']};"
        f" llama.cpp {short_commits(campaign['engine_commit'])} ({campaign['engine']});"
        f" {' to '.join(days)} (UTC).",
        *_warnings(campaign),
        _audit(analysis),
    ]
    return " ".join(sentences)


@applied()
def picture(analysis: Analysis) -> Figure:
    """Return the campaign's figure of speedups, or what it has in its place, over its caption."""
    figures = (FIGURES[name](analysis) for name in PICTURES)
    shown = next(filter(drawn, figures), None) or Figure(figsize=(WIDTH_IN, _LINE_IN))
    rows, columns = (pixels := _pixels(shown)).shape[:2]
    lines = wrap(caption(analysis), int(_LETTERS_AN_INCH * columns / PNG_DPI) - 2)
    below = round(PNG_DPI * _LINE_IN * (len(lines) + 1))
    whole = Figure(figsize=(columns / PNG_DPI, (rows + below) / PNG_DPI), dpi=PNG_DPI)
    whole.set_layout_engine("none")
    whole.figimage(pixels, 0, below)
    words = "\n".join(lines)
    whole.text(0.015, below / 2 / (rows + below), words, va="center", fontsize=_CAPTION_PT)
    return whole


def _pixels(figure: Figure) -> NDArray[np.float32]:
    """Return a figure as it is printed: a caption beside its axes would move them."""
    printed = BytesIO()
    figure.savefig(printed, format="png", dpi=PNG_DPI)
    printed.seek(0)
    image: NDArray[np.float32] = imread(printed)
    return image


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure as PNG; equal figures give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with applied():
        figure.savefig(path, dpi=PNG_DPI)


def markdown(analysis: Analysis) -> str:
    """Return the answer for each target, and a row for each target, draft and γ."""
    cells = records(usual_cells(analysis))
    level = plain(latex.percent(analysis.campaign["confidence"].iloc[0], 0))
    lines = [escape(caption(analysis))]
    for row in records(advised_targets(analysis)):
        lines += ["", *_answer(row)]
    if cells:
        lines += ["", _row(_HEADS), _row(["---", "---", *["---:"] * (len(_HEADS) - 2)])]
        lines += [_row(_cells(cell)) for cell in cells]
        lines += ["", f"Brackets: {level} % intervals of the speedup over blocks of runs."]
        if not all(cell["paired"] for cell in cells):
            lines[-1] += " †: compared with a mean rate, for want of a baseline of its own."
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return Markdown that shows `text` on one line and does nothing else."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def fenced(code: str) -> list[str]:
    """Return lines that show a line of code, whatever backticks it has."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}sh", " ".join(code.split()), fence]


def _models(analysis: Analysis) -> str:
    """Return the words for who is measured with whose drafts."""
    cells = usual_cells(analysis)
    if cells.empty:
        return listed(ordered_models(analysis)["label"])
    labels = ordered_models(analysis).set_index("model")["label"]
    targets, drafts = (
        listed(label for model, label in labels.items() if model in set(cells[role]))
        for role in ("target", "draft")
    )
    return f"{targets} with draft {drafts}"


def _warnings(campaign: Record) -> list[str]:
    if campaign["source"] == "published":
        return ["Rows of the published study, recorded by its authors."]
    if campaign["synthetic"]:
        return ["The models have random weights: this is about the method, not about real models."]
    return []


def _audit(analysis: Analysis) -> str:
    whole = whole_audit(analysis)
    if not whole:
        return "Not audited."
    marked = int(whole["marked"])
    told = f"{marked:,}" if marked else "none"
    controls = count_check(whole, "controls")
    known = f"{controls['runs'] - controls['failed']} of {controls['runs']} as they must be"
    return (
        f"Audit: {told} of {int(whole['runs']):,} runs {'breaks' if marked == 0 else 'break'} a"
        f" check; controls: {known if controls['runs'] else 'not measured'}."
    )


def _answer(row: Record) -> list[str]:
    best = (
        f" Fastest of {row['settings']}: draft {escape(str(row['draft_label']))},"
        f" γ = {row['gamma']}, speedup {plain(latex.fixed(row['speedup'], 2))}"
        f" {plain(latex.interval(row['joint_low'], row['joint_high']))}".rstrip()
        + "."
        if row["settings"]
        else ""
    )
    reason = escape(str(row["reason"]))
    words = _ANSWERS[Answer(row["answer"])]
    lines = [f"**{escape(str(row['label']))}: {words}** ({reason}).{best}"]
    return [*lines, "", *fenced(row["command"])] if isinstance(row["command"], str) else lines


def _cells(cell: Record) -> list[str]:
    reach = plain(latex.interval(cell["speedup_low"], cell["speedup_high"]))
    dagger = "" if cell["paired"] else "†"
    shown = f"{plain(latex.fixed(cell['speedup'], 2))}{dagger} {reach}".rstrip()
    return [
        escape(str(cell["label"])),
        escape(str(cell["draft_label"])),
        str(cell["gamma"]),
        shown,
        f"{plain(latex.percent(cell['acceptance_rate']))} %",
        plain(latex.fixed(cell["tokens_per_second"])),
        plain(latex.fixed(cell["baseline_tokens_per_second"])),
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
