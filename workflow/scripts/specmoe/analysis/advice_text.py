"""The advice as text for a terminal, and as values for JSON."""

import math
from textwrap import wrap
from typing import Any

import pandas as pd

from specmoe.analysis.advice import Answer, Standing
from specmoe.analysis.build import Analysis
from specmoe.analysis.category_text import describe_categories
from specmoe.analysis.concurrency_text import describe_concurrency
from specmoe.analysis.labelled import Record, advised_targets, draft_labels, records, table
from specmoe.analysis.labelled_loads import change_cells
from specmoe.analysis.labelled_workloads import category_cells, gap_cells
from specmoe.analysis.machines import machine_of
from specmoe.analysis.spread_text import precise
from specmoe.config.methods import is_ngram, methods_of
from specmoe.files import gigabytes

WIDTH = 100
_NAMED_PROMPTS = 8
HEADS = {
    Answer.ON: "switch it on",
    Answer.OFF: "leave it off",
    Answer.UNDECIDED: "undecided",
    Answer.UNKNOWN: "not known",
}
_CONTROLS = {
    "passed": "its controls passed",
    "failed": "its controls fail",
    "not measured": "no controls were measured (suite K)",
}


def describe_advice(analysis: Analysis) -> str:
    """Return what to switch on, target by target, with the measurements behind it."""
    campaign = records(analysis.campaign)[0]
    settings = table(analysis, "advice_settings")
    settings = settings.assign(draft_label=settings["draft"].map(draft_labels(analysis)))
    lines = [
        f"Should speculative decoding be switched on? Campaign {campaign['campaign']},"
        f" {machine_of(campaign)}, backend {campaign['backend']}",
    ]
    if campaign["synthetic"]:
        lines.append(
            "Its models are synthetic: this shows the method and is not advice for real ones."
        )
    if campaign["machine_varies"]:
        lines += _wrapped(
            f"Its {campaign['machines']} machines may be of any kind, so the machine is what"
            " varies: blocks and repeats below count machines.",
            "",
        )
    advised = advised_targets(analysis)
    categories, gaps = category_cells(analysis), gap_cells(analysis)
    for row in records(advised):
        own = records(settings[settings["target"] == row["target"]])
        by_category = describe_categories(row, categories, gaps)
        lines += ["", *_target(row, own, campaign, by_category)]
    every = table(analysis, "advice")["target"]
    if alone := ", ".join(every[~every.isin(advised["target"])]):
        lines += ["", *_wrapped(f"No runs with a draft and their own baselines: {alone}", "")]
    if loads := describe_concurrency(analysis):
        lines += ["", "Requests at once", *(part for text in loads for part in _wrapped(text))]
    lines += ["", *_wrapped(_footnote(campaign), "")]
    return "\n".join(lines) + "\n"


def advice_values(analysis: Analysis) -> dict[str, Any]:
    """Return the advice as plain values; an unknown value is null."""
    settings = records(table(analysis, "advice_settings"))
    categories = records(table(analysis, "categories"))
    targets = []
    for row in records(table(analysis, "advice")):
        own, by_category = (
            [_plain(one) for one in rows if one["target"] == row["target"]]
            for rows in (settings, categories)
        )
        more = {"by_category": by_category} if by_category else {}
        targets.append(_plain(row) | {"measured": own} | more)
    confidence = float(analysis.campaign["confidence"].iloc[0])
    loads = [_plain(row) for row in records(change_cells(analysis))]
    more = {"requests_at_once": loads} if loads else {}
    return {"campaign": analysis.name, "confidence": confidence, "targets": targets} | more


def _target(
    row: Record, settings: list[Record], campaign: Record, by_category: list[str]
) -> list[str]:
    answer = Answer(row["answer"])
    lines = [f"{row['label']} ({row['target']}): {HEADS[answer]}"]
    if answer is Answer.ON:
        lines += _wrapped(f"{_setting(row)}: {_speedup(row)}")
        lines += _wrapped(_equals(row, settings))
        lines += _wrapped(_costs(row))
    else:
        best = f"; the fastest of {row['settings']} is {_setting(row)}: {_speedup(row)}"
        known = best if row["settings"] else ""
        lines += _wrapped(f"{_sentence(row['reason'])}{known}")
    if pd.notna(row["end_to_end"]):
        lines += _wrapped(_with_prompt(row))
    for text in by_category:
        lines += _wrapped(text)
    if row["settings"]:
        lines += _wrapped(_sureness(row, campaign))
    if row["set_aside"]:
        lines += _wrapped(_set_aside(settings))
    if answer is Answer.UNDECIDED:
        lines += _wrapped(_outlook(row, campaign))
    if isinstance(row["command"], str):
        lines.append(f"  {row['command']}")  # whole, to be pasted into a shell
    return lines


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _setting(row: Record) -> str:
    return f"{row['draft_label']}, γ = {row['gamma']} (suite {row['suite']})"


def _speedup(row: Record) -> str:
    if math.isnan(row["joint_low"]):
        return f"speedup {row['speedup']:.2f} in one block, without an interval"
    return f"speedup {row['speedup']:.2f} [{row['joint_low']:.2f}, {row['joint_high']:.2f}]"


def _equals(row: Record, settings: list[Record]) -> str:
    """Return which settings are not shown to be slower than another."""
    if row["settings"] == 1:
        return "No other setting was measured."
    equal = [one for one in settings if one["standing"] == Standing.EQUAL]
    if not equal:
        return f"All others of the {row['settings']} measured settings are slower."
    listed = "; ".join(f"{_setting(one)}: {_speedup(one)}" for one in equal)
    return f"Not shown to be slower: {listed}"


def _with_prompt(row: Record) -> str:
    """Return what is left of the speedup if the time to read the prompt counts."""
    first, whole = (_measured(row, name) for name in ("first_token_ratio", "end_to_end"))
    prompt = "the prompt, which the draft reads too" if drafts_with_model(row) else "the prompt"
    return (
        f"With {prompt}: speedup {whole} of the whole answer; the time"
        f" to the first token is {first} times as long"
    )


def drafts_with_model(row: Record) -> bool:
    """Return whether a model drafts in a row, or a part of the target, and not n-grams alone."""
    return not all(map(is_ngram, methods_of(row["method"])))


def _measured(row: Record, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    ends = "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return f"{row[name]:.2f}{ends}"


def _outlook(row: Record, campaign: Record) -> str:
    """Return how many repeats would decide an answer."""
    repeats = row["repeats_to_decide"]
    if pd.isna(repeats):
        return (
            f"More than statistics.repeats_limit = {campaign['repeats_limit']} repeats would be"
            " needed: gain or loss is too small for this spread"
        )
    words = f"{repeats} repeats would decide it if speedups and spread stay as they are"
    return f"{words}:" if isinstance(row["command"], str) else words


def _costs(row: Record) -> str:
    """Return what a setting costs on the disk and, where it was measured, in memory."""
    if pd.notna(row["draft_bytes"]):
        text = f"Costs: the draft's file, {gigabytes(row['draft_bytes'])}"
    elif pd.notna(row["draft_model"]):
        text = f"Costs: the file of {row['draft_model']}"
    else:
        text = "Costs: nothing on the disk, as it loads no file besides the target's"
    if pd.isna(added := row["added_rss_bytes"]):
        return text
    if added <= 0:
        return f"{text}; the process's peak memory did not grow"
    return f"{text}; the process's peak memory grew by {gigabytes(added)}"


def _sureness(row: Record, campaign: Record) -> str:
    parts = [
        f"{row['blocks']} blocks of {row['runs'] // row['blocks']} runs"
        if row["blocks"] > 1
        else f"one block of {row['runs']} runs",
        _CONTROLS[row["controls"]],
        "the audit marks none of its runs",
    ]
    if pd.notna(row["block_sd"]):
        parts.insert(1, f"blocks differ by {row['block_sd']:.1%}")
    if pd.notna(row["repeats_needed"]):
        parts.append(
            f"{precise(campaign['precision'])} needs {row['repeats_needed']} repeats at this spread"
        )
    text = f"How sure: {'; '.join(parts)}."
    if row["elsewhere"]:
        about = f"prompts {row['prompt_set']}"
        if row["prompts"] > _NAMED_PROMPTS:
            about = f"{row['prompts']} prompts"
        text += f" It is about {about}; settings on others: {row['elsewhere']}."
    if pd.notna(row["other_prompts_low"]):
        text += (
            f" Interval for other prompts like its {row['prompts']}, not allowing for the choice:"
            f" [{row['other_prompts_low']:.2f}, {row['other_prompts_high']:.2f}]."
        )
    return text


def _set_aside(settings: list[Record]) -> str:
    marked = [
        f"{_setting(one)}, {one['impossible']} of {one['runs']} runs impossible,"
        f" {one['marked'] - one['impossible']} implausible"
        for one in settings
        if one["standing"] == Standing.MARKED
    ]
    return f"Set aside, because the audit marks runs or their baselines: {'; '.join(marked)}"


def _footnote(campaign: Record) -> str:
    return (
        f"Speedups of decoding have intervals ({campaign['confidence']:.0%}, Student's t) that hold"
        " for all settings of a target at once, so choosing the fastest does not bias them; those"
        " with the prompt are each setting's own. All are about this machine, engine and prompts."
    )


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    further = indent + "  " if indent else ""
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=further)


def _plain(row: Record) -> dict[str, Any]:
    """Return a row whose values are Python's own, which JSON knows."""
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}
    return {key: None if pd.isna(value) else value for key, value in plain.items()}
