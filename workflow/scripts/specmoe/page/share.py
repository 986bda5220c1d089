"""Files to share: a picture with its caption in it, and a table in Markdown.

Both name the machine, the models, the engine, the day and the audit's result, because people read
them without the page.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.image import imread

from specmoe.analysis.advice import Answer, Controls
from specmoe.analysis.advice_text import HEADS, about_loops, drafts_with_model, machine_of
from specmoe.analysis.compared_prompts import (
    excluded_share,
    odd_share,
    on_other_prompts,
    prompt_words,
)
from specmoe.analysis.drafts import by_model
from specmoe.analysis.filters import advised_targets, count_check, usual_cells, whole_audit
from specmoe.analysis.number_text import fixed, interval, measured, percent, thousands
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.audit.finding import Level
from specmoe.config.methods import method_words, methods_of
from specmoe.figures.style import PNG_DPI, WIDTH_IN, applied
from specmoe.paper.macro_list import day, listed
from specmoe.tables.columns import Kind, TableColumn
from specmoe.tables.rows import mark_unpaired, short_commits
from specmoe.tables.tables import read_columns
from specmoe.words import counted, later

# The picture is the first of them that shows anything.
PICTURES = (
    "methods",
    "speedup_by_gamma",
    "prompt_lengths",
    "break_even",
    "verification_cost",
    "throughput",
)
_CAPTION_PT = 7
_LETTERS_AN_INCH = 19  # at that size
_LINE_IN = 0.14
# The table's columns, by their names in `paper/tables.yaml`.
_COLUMNS = ("target", "draft", "gamma", "any_speedup", "accepted", "rate", "baseline")
# Characters that Markdown, or a site that shows it, reads as a mark, a link or a mention.
_MARKS = re.compile(r"[\\`*_\[\]<>|~&$#@^]|:(?=//)")


def caption(analysis: Analysis) -> str:
    """Return a few sentences: what was measured, on which machine, and what the audit found."""
    campaign = records(analysis.campaign)[0]
    days = dict.fromkeys(day(campaign[key]) for key in ("started_at", "ended_at"))
    sentences = [
        f"Campaign {analysis.name}: {_models(analysis)}.",
        f"{machine_of(campaign)}, backend {campaign['backend']};"
        f" llama.cpp {short_commits(campaign['engine_commit'])} ({campaign['engine']});"
        f" {' to '.join(days)} (UTC).",
        *_warnings(campaign),
        "Settings are rivals only on the same prompts.",
        *_loops(analysis),
        _audit(analysis),
    ]
    return " ".join(sentences)


@applied()
def save_picture(analysis: Analysis, figures: Path, path: Path) -> None:
    """Write the first of `PICTURES` that shows anything over the campaign's caption, as PNG.

    `figures` is the folder of the figures as PNG: a caption in the same figure would move its axes.
    """
    files = (figures / f"{name}.png" for name in PICTURES)
    shown = next(filter(Path.exists, files), None)
    pixels = imread(shown) if shown else np.ones((1, round(WIDTH_IN * PNG_DPI), 3))
    rows, columns = pixels.shape[:2]
    lines = wrap(caption(analysis), int(_LETTERS_AN_INCH * columns / PNG_DPI) - 2)
    below = round(PNG_DPI * _LINE_IN * (len(lines) + 1))
    whole = Figure(figsize=(columns / PNG_DPI, (rows + below) / PNG_DPI))
    whole.figimage(pixels, 0, below)
    words = "\n".join(lines)
    whole.text(0.015, below / 2 / (rows + below), words, va="center", fontsize=_CAPTION_PT)
    whole.savefig(path)


def markdown(analysis: Analysis, specifications: Path) -> str:
    """Return the answer for each target, and a row for each target, draft and γ.

    `specifications` is `paper/tables.yaml`.
    """
    rows = records(mark_unpaired(usual_cells(analysis)))
    lines = [escape(caption(analysis))]
    elsewhere = on_other_prompts(analysis)
    for row in records(advised_targets(analysis)):
        lines += ["", *_answer(row, elsewhere.get(row["target"], []))]
    if rows:
        shared = read_columns(specifications)
        level = percent(analysis.campaign["confidence"].iloc[0], 0)
        lines += ["", *_table([shared[name] for name in _COLUMNS], rows)]
        rule = "Only settings on the same prompts that drafted anything are compared."
        lines += ["", f"Brackets: {level} % intervals of the speedup over blocks of runs. {rule}"]
        if any(row["unpaired"] for row in rows):
            lines[-1] += " †: compared with a mean rate, as it has no baseline of its own."
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
    """Return words for the targets and drafts that were measured."""
    cells, models = usual_cells(analysis), analysis.models
    if cells.empty:
        return listed(models["label"])
    targets = models.loc[models["model"].isin(cells["target"]), "label"]
    of_models = by_model(cells)
    drafts = models.loc[models["model"].isin(cells.loc[of_models, "draft_model"]), "label"]
    others = cells.loc[~of_models, "method"].drop_duplicates()
    words = [*drafts, *(method_words(methods_of(types)) for types in others)]
    return f"{listed(targets)} with {'' if drafts.empty else 'draft '}{listed(words)}"


def _warnings(campaign: Record) -> list[str]:
    if campaign["source"] == "published":
        return ["Rows of the published study, recorded by its authors."]
    if campaign["synthetic"]:
        return ["The models have random weights: this is about the method, not about real models."]
    return []


def _loops(analysis: Analysis) -> list[str]:
    """Return a sentence on targets whose gain was measured on looping text, if there are any."""
    advised = advised_targets(analysis)
    looping = advised.loc[advised["answer"] == Answer.LOOPING, "label"]
    if looping.empty:
        return []
    return [f"The text of {listed(looping)} loops: the gain says nothing about text that does not."]


def _audit(analysis: Analysis) -> str:
    whole = whole_audit(analysis)
    if not whole:
        return "Not audited."
    found = ", ".join(f"{thousands(whole[level])} {level}" for level in Level)
    controls = count_check(whole, "controls")
    known = controls["runs"] - controls["failed"]
    passed = f"{known} of {controls['runs']} have their known outcome"
    return (
        f"Audit of {counted(thousands(whole['runs']), 'run')}: {found};"
        f" controls: {passed if controls['runs'] else 'not measured'}."
    )


def _answer(row: Record, elsewhere: Sequence[Record]) -> list[str]:
    label, reason = escape(str(row["label"])), escape(str(row["reason"]))
    answer = f"**{label}: {HEADS[Answer(row['answer'])]}** ({reason})."
    if row["settings"]:
        reach = interval(row["joint_low"], row["joint_high"])
        draft = ("draft " if row["by_model"] else "") + escape(str(row["draft_label"]))
        fastest = "Only setting" if row["settings"] == 1 else f"Fastest of {row['settings']}"
        answer += (
            f" {fastest} on the same prompts"
            f" ({escape(prompt_words(row['prompt_set']))}): {draft},"
            f" γ = {row['gamma']}, speedup {fixed(row['speedup'], 2)} {reach}".rstrip()
            + "."
        )
        answer += "".join(map(_elsewhere, elsewhere))
        left_out = filter(None, [excluded_share(row), odd_share(row)])
        answer += "".join(f" {escape(words).capitalize()}." for words in left_out)
        if pd.notna(row["end_to_end"]):
            reads = ", which the draft reads too" if drafts_with_model(row) else ""
            answer += (
                f" With the prompt{reads}: {fixed(row['end_to_end'], 2)} for the whole answer, and"
                f" the first token comes {later(row['first_token_ratio'])}."
            )
    if row["answer"] == Answer.LOOPING:
        answer += f" {about_loops(row)}."
    if row["controls"] == Controls.NONE:
        answer += " The target has no controls of its own."
    if row["other_sittings"]:
        answer += f" These sittings by themselves say: {HEADS[row['these_sittings']]}."
    if pd.notna(row["second_look_repeats"]):
        answer += f" A second look takes {counted(row['second_look_repeats'], 'repeat')}."
    return [answer, "", *fenced(row["command"])] if isinstance(row["command"], str) else [answer]


def _elsewhere(row: Record) -> str:
    """Return a sentence on settings that were measured on other prompts."""
    best = measured(row["speedup"], row["joint_low"], row["joint_high"])
    return (
        f" On {escape(prompt_words(row['prompt_set']))}, fastest of {row['settings']}:"
        f" {escape(str(row['draft_label']))}, γ = {row['gamma']}, {best}."
    )


def _table(columns: Sequence[TableColumn], rows: Sequence[Record]) -> list[str]:
    """Return the lines of a table in Markdown."""
    heads = [escape(column.head.en) for column in columns]
    rules = ["---:" if column.kind == Kind.NUMBER else "---" for column in columns]
    lines = [heads, rules, *([_cell(column, row) for column in columns] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(column: TableColumn, row: Record) -> str:
    cell = column.show(row)
    text = cell.text if column.kind == Kind.NUMBER else escape(cell.text)
    return f"{text}{cell.mark} {cell.reach}".rstrip()
