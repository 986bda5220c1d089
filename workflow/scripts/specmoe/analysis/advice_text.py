"""The advice as text for a terminal, and as values for JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Answer, Standing, decide
from specmoe.analysis.contenders import describe
from specmoe.analysis.filters import advised_targets
from specmoe.analysis.intervals import session_reach
from specmoe.analysis.number_text import TOO_FEW_PROMPTS, interval, measured_in
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.analysis.sentences import (
    describe_categories,
    excluded_share,
    odd_share,
    on_other_prompts,
    prompt_words,
)
from specmoe.analysis.summaries import CELL
from specmoe.config.engines import Backend
from specmoe.config.methods import BY_TYPE, is_ngram
from specmoe.files import gigabytes, read_record, replace_text
from specmoe.runs.schema import DISTURBED
from specmoe.words import counted, later

WIDTH = 100
HEADS = {
    Answer.ON: "switch it on",
    Answer.HERE: "switch it on for these prompts",
    Answer.LOOPING: "switch it on for looping text",
    Answer.OFF: "leave it off at these γ",
    Answer.UNDECIDED: "undecided",
    Answer.UNKNOWN: "not known",
}
_CONTROLS = {"passed": "its controls passed", "failed": "its controls fail"}


def machine_of(campaign: Mapping[str, Any]) -> str:
    """Return the name of what computed in a campaign, from the row of `Analysis.campaign`."""
    gpu = campaign.get("host_gpu")
    chip = campaign["host_chip"] if campaign["backend"] == Backend.CPU or pd.isna(gpu) else gpu
    return str(chip)


def describe_advice(analysis: Analysis) -> str:
    """Return what to switch on, target by target, with the measurements behind it."""
    campaign = records(analysis.campaign)[0]
    settings = analysis.advice_settings
    lines = [
        f"Should speculative decoding be switched on? Campaign {campaign['campaign']},"
        f" {machine_of(campaign)}, backend {campaign['backend']}",
    ]
    if campaign["synthetic"]:
        lines.append(
            "Its models are synthetic: this shows the method and is not advice for real ones."
        )
    if campaign["source"] == "measured":
        lines += _wrapped(_other_sessions(campaign), "")
    advised = advised_targets(analysis)
    elsewhere = on_other_prompts(analysis)
    for row in records(advised):
        own = records(settings[settings["target"] == row["target"]])
        more = [
            *_compared(row, elsewhere.get(row["target"], [])),
            *describe_categories(row, analysis.categories),
        ]
        lines += ["", *_target(row, own, more)]
    every = analysis.advice["target"]
    if alone := ", ".join(every[~every.isin(advised["target"])]):
        lines += ["", *_wrapped(f"No runs with a draft and their own baselines: {alone}", "")]
    lines += ["", *_wrapped(_footnote(campaign), "")]
    return "\n".join(lines) + "\n"


def advice_values(analysis: Analysis) -> dict[str, Any]:
    """Return the advice as plain values; an unknown value is null."""
    advice, settings, categories = (
        records(getattr(analysis, name)[TABLES[name].columns])
        for name in ("advice", "advice_settings", "categories")
    )
    targets = []
    for row in advice:
        own, by_category = (
            [_plain(one) for one in rows if one["target"] == row["target"]]
            for rows in (settings, categories)
        )
        more = {"by_category": by_category} if by_category else {}
        targets.append(_plain(row) | {"measured": own} | more)
    confidence = float(analysis.campaign["confidence"].iloc[0])
    return {"campaign": analysis.name, "confidence": confidence, "targets": targets}


def _other_sessions(campaign: Record) -> str:
    """Return how far another session may be from this one."""
    reach = math.expm1(session_reach(campaign["session_sd"]))
    return (
        f"Another session may differ by ±{reach:.0%} (statistics.session_sd), for which the answers"
        " allow; another day may differ by more."
    )


def _target(row: Record, settings: list[Record], more: list[str]) -> list[str]:
    answer = Answer(row["answer"])
    if answer in (Answer.ON, Answer.HERE, Answer.LOOPING):
        texts = [_gain(row), _equals(row, settings), _costs(row)]
    else:
        fastest = "only setting" if row["settings"] == 1 else f"fastest of {row['settings']}"
        best = f"; the {fastest} is {_setting(row)}: {_speedup(row)}" if row["settings"] else ""
        texts = [f"{_sentence(row['reason'])}{best}"]
    if pd.notna(row["end_to_end"]):
        texts.append(_with_prompt(row))
    texts += [_about_text(row), *more]
    if row["settings"]:
        texts.append(_sureness(row))
    if row["set_aside"]:
        texts.append(_set_aside(settings))
    if answer in (Answer.UNDECIDED, Answer.HERE):
        texts.append(_outlook(row))
    # Whole, to be pasted into a shell.
    command = [f"  {row['command']}"] if isinstance(row["command"], str) else []
    head = f"{row['label']} ({row['target']}): {HEADS[answer]}"
    return [head, *(line for text in texts for line in _wrapped(text)), *command]


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _setting(row: Record) -> str:
    return f"{row['draft_label']}, γ = {row['gamma']} (suite {row['suite']})"


def _compared(row: Record, elsewhere: list[Record]) -> list[str]:
    """Return what the answer compares, what not, and what is fastest on other prompts."""
    if not row["settings"]:
        return []
    compared = counted(row["settings"], "setting")
    lines = [
        f"Compared: {compared} on the same prompts ({prompt_words(row['prompt_set'])}). On others:"
        f" {'; '.join(map(_elsewhere, elsewhere)) or 'none'}."
    ]
    why = {"idle": "nothing was drafted", "none_left": f"{DISTURBED} during every pair"}
    return lines + [
        f"Not compared, as {words}: {counted(row[name], 'setting')}."
        for name, words in why.items()
        if row[name]
    ]


def _elsewhere(row: Record) -> str:
    fastest = f"{_setting(row)}, {_speedup(row)}"
    if row["settings"] > 1:
        fastest = f"the fastest of {row['settings']} is {fastest}"
    return f"{fastest} ({prompt_words(row['prompt_set'])})"


def _speedup(row: Record) -> str:
    if math.isnan(row["speedup_low"]):
        return f"speedup {row['speedup']:.2f} in one block, without an interval"
    return f"speedup {measured_in(row, 'speedup')}"


def _gain(row: Record) -> str:
    """Return a setting that gains, with its speedup, and what the text leaves open."""
    gain = f"{_setting(row)}: {_speedup(row)}"
    if row["answer"] != Answer.LOOPING:
        return f"{gain}. {_sentence(row['reason'])}"
    return (
        f"{gain}. {row['looping']:.0%} of its text loops: the same tokens again and again, which"
        " are easy to draft. This says nothing about text that does not loop. Answers that may end"
        " (`stop: eos`) loop less"
    )


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
    prompt = "the prompt"
    if not is_ngram(BY_TYPE[row["method"]]):
        prompt += ", which the draft reads too"
    whole = f"With {prompt}: speedup {measured_in(row, 'end_to_end')} of the whole answer"
    if math.isnan(row["first_token_ratio"]):
        return whole
    low, high = row["first_token_ratio_low"], row["first_token_ratio_high"]
    ends = "" if math.isnan(low) else f" [{low - 1:+.0%}, {high - 1:+.0%}]"
    return f"{whole}; the first token comes {later(row['first_token_ratio'])}{ends}"


def _about_text(row: Record) -> str:
    """Return how far a setting's text repeats itself; empty if nothing is known."""
    shares = {
        "repetition": "of its 4-grams repeat earlier ones",
        "looping": "is in loops",
    }
    known = [f"{row[name]:.0%} {words}" for name, words in shares.items() if pd.notna(row[name])]
    return f"Text: {', '.join(known)}" if known else ""


def _outlook(row: Record) -> str:
    """Return what limits an answer, and how many more repeats, or prompts, would decide."""
    if pd.notna(more := row["more_repeats"]):
        words = f"{counted(more, 'more repeat')} would decide it, if speedups and spreads stay"
        return f"{words}:" if isinstance(row["command"], str) else words
    if pd.notna(more := row["more_prompts"]):
        more = counted(more, "more prompt")
        return f"{more} like these would show that others gain, if they do so; repeats would not"
    return "Neither more repeats nor more prompts like these would decide more"


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


def _sureness(row: Record) -> str:
    parts = [
        _blocks(row),
        odd_share(row) or "the audit marks none of its runs",
        *filter(None, [_CONTROLS.get(row["controls"]), excluded_share(row)]),
    ]
    if pd.notna(row["block_sd"]):
        parts.insert(1, f"blocks differ by {row['block_sd']:.1%}")
    text = f"How sure: {'; '.join(parts)}. Its prompts were sent as {row['sent']}."
    return f"{text}{_deciding(row)}"


def _deciding(row: Record) -> str:
    """Return the intervals that decide; empty without."""
    if pd.isna(row["best_low"]):
        return ""
    if row["answer"] == Answer.OFF:
        return f" Interval with another session: {interval(row['alone_low'], row['alone_high'])}."
    chosen = f"the best of {row['settings']}, with another session"
    these = interval(row["best_low"], row["best_high"])
    others = interval(row["other_prompts_low"], row["other_prompts_high"], wide=TOO_FEW_PROMPTS)
    others = f", on prompts like these {others}" if others else ""
    return f" Interval of {chosen}: on these prompts {these}{others}."


def _blocks(row: Record) -> str:
    if row["blocks"] == 1:
        return f"one block of {row['runs']} runs"
    if row["runs"] % row["blocks"]:
        return f"{row['runs']} runs in {row['blocks']} blocks"
    return f"{row['blocks']} blocks of {counted(row['runs'] // row['blocks'], 'run')}"


def _set_aside(settings: list[Record]) -> str:
    marked = [
        f"{_setting(one)}, {one['impossible']} of {counted(one['runs'], 'run')} impossible,"
        f" {one['marked'] - one['impossible']} implausible"
        for one in settings
        if one["standing"] == Standing.MARKED
    ]
    return f"Set aside, because the audit marks runs or their baselines: {'; '.join(marked)}"


def _footnote(campaign: Record) -> str:
    return (
        f"Intervals beside speedups are of these prompts and this session"
        f" ({campaign['confidence']:.0%}, Student's t on means of blocks). An answer also allows"
        " for another session, and a gain for the choice among the settings on the same prompts; a"
        " setting on other prompts, or one that drafted nothing, is no rival. All are about this"
        " machine and engine. Off is said of the γ that were measured."
    )


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    further = indent + "  " if indent else ""
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=further)


def _plain(row: Record) -> dict[str, Any]:
    """Return a row whose values are Python's own, which JSON knows."""
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}
    return {key: None if pd.isna(value) else value for key, value in plain.items()}


def _last_stage(rows: Sequence[Mapping[str, Any]], analysis: Analysis) -> list[dict[str, Any]]:
    """Return the rows of the last decision, with what all repeats say of those measured further."""
    measured = {tuple(row[name] for name in CELL): row for row in records(analysis.advice_settings)}
    found = []
    for row in rows:
        own = measured.get(tuple(row[name] for name in CELL))
        last = {} if own is None or not row["measured"] else _measured(own)
        found.append({**row, **last})
    return found


def _measured(own: Record) -> dict[str, Any]:
    """Return what all repeats say of a setting, from its row of the advice."""
    ends = own["best_low"], own["other_prompts_low"], own["alone_high"]
    answer = decide(*(np.array([end]) for end in ends))
    shown = own["standing"] in (Standing.MARKED, Standing.IDLE)
    numbers = {name: own[name] for name in ("speedup", "speedup_low", "speedup_high")}
    return {
        **{name: value for name, value in numbers.items() if not math.isnan(value)},
        "verdict": str(own["standing"] if shown else answer),
    }


def advise(analysis: Path, contenders: Sequence[Path], out: Path) -> None:
    """Print the advice of an analysis, a folder, and write its values as JSON.

    `contenders` are the decisions of a campaign that was measured in stages, the last one last.
    """
    tables = Analysis.read(analysis)
    values = advice_values(tables)
    if contenders:
        values["settings"] = _last_stage(read_record(contenders[-1])["settings"], tables)
        print("\n".join(describe(values["settings"])) + "\n")
    replace_text(out, json.dumps(values, indent=1, allow_nan=False) + "\n")
    print(describe_advice(tables), end="")
