"""Whether to switch speculative decoding on, for each target of a campaign, and with which setting.

A setting is a cell: suite, target, draft and γ, measured with the draft's own acceptance, at the
campaign's temperature, against baselines of its own. The answer is *on*, with the fastest setting
whose interval lies above 1; *off*, if the intervals of all settings lie below 1; or *undecided*.

Settings are ranked among those that were measured on the same prompts, as speedups on code and on
prose are no rivals. The set of prompts that answers is the one with most whole texts, because
people send texts; among equals, the one with most prompts, then one whose texts may end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

import pandas as pd

from specmoe.analysis.controls import Control
from specmoe.analysis.deciding import measuring_line, repeats_to_decide
from specmoe.analysis.intervals import (
    NO_INTERVAL,
    interval_over_prompts,
    joint_intervals,
    log_speedups,
    ratio_of_means,
)
from specmoe.analysis.launch import launch_line
from specmoe.analysis.spread import cell_id
from specmoe.analysis.summaries import CELL
from specmoe.audit.checks import marked_runs
from specmoe.audit.finding import CheckVerdict, Level
from specmoe.config.backend import Backend
from specmoe.config.block import PASSAGE_PREFIX, Protocol, Stop
from specmoe.config.matrix import comparison_of
from specmoe.config.schema import Config
from specmoe.models.card import ModelCard


class Answer(StrEnum):
    """What to do with a target."""

    ON = "switch on"
    OFF = "leave off"
    UNDECIDED = "undecided"
    UNKNOWN = "not known"


class Standing(StrEnum):
    """How a setting compares with the others of its target on the same prompts."""

    BEST = "best"
    EQUAL = "equal"  # no other setting is shown to be faster
    SLOWER = "slower"
    MARKED = "marked"  # the audit marks some of its rows: set aside


class Controls(StrEnum):
    """Whether a target's controls, whose outcome is known beforehand, came out as they should."""

    PASSED = "passed"
    FAILED = "failed"
    NONE = "not measured"


# Checks of the audit that do not bear on one run's time or text: `determinism` is about other
# repeats, and `controls` counts for the target as a whole.
_HARMLESS = frozenset({"determinism", "controls"})

# Integer columns that are null where a target has no setting.
_COUNTS = [
    "repeats_to_decide",
    "gamma",
    "runs",
    "blocks",
    "prompts",
    "repeats_needed",
    "marked",
    "impossible",
    "draft_bytes",
]
# What starts llama-server as a setting was measured, beside its target and γ.
_SIDE = [*("method", "draft_model", "ngram_gamma", "p_min", "n_min", "n_match", "min_hits")]
SETTING_COLUMNS = [
    *(*CELL, *_SIDE, "runs", "blocks", "tokens_per_second", "baseline_tokens_per_second"),
    *("acceptance_rate", "speedup", "speedup_low", "speedup_high"),
    *("first_token_ratio", "first_token_ratio_low", "first_token_ratio_high"),
    *("end_to_end", "end_to_end_low", "end_to_end_high", "joint_low", "joint_high"),
    *("prompt_set", "prompts", "other_prompts_low", "other_prompts_high"),
    *("block_sd", "repeats_needed", "marked", "impossible", "draft_bytes"),
    *("added_rss_bytes", "standing"),
]
ADVICE_COLUMNS = [
    *("target", "answer", "reason", "controls", "settings", "set_aside", "equal", "elsewhere"),
    *("repeats_to_decide", "command"),
    *[column for column in SETTING_COLUMNS if column not in ("target", "standing")],
]


@dataclass(frozen=True)
class Advice:
    """The answer for each target, and the settings it was chosen from.

    - targets: one row per target, in the order of the campaign's models: answer (`Answer`), reason
      (a sentence), controls (`Controls`), settings (how many were compared on the prompts that
      answer), set_aside (how many more the audit marks), equal (how many have the standing),
      elsewhere (how many were measured on other prompts), repeats_to_decide (see the function; null
      unless the answer is undecided), command (what to type next: the line that starts
      llama-server, or the one that measures more repeats; null if there is none), and the columns
      of the best setting, null without one.
    - settings: one row per setting, those on the prompts that answer first, best first: columns of
      `summarise_cells`; joint_low and joint_high, see `joint_intervals`, over the settings on the
      same prompts that are not set aside; prompt_set (the prompts' ids), prompts (their number),
      and the interval for other ones, see `interval_over_prompts`; block_sd and
      repeats_needed, see `spread_of_cells`; marked (runs that the audit marks, or whose baseline it
      marks); impossible (those of them that are, or whose baseline is, more than implausible);
      draft_bytes (the draft's file); added_rss_bytes (peak of resident memory over that of
      the baselines; null where not recorded); standing (`Standing`).
    """

    targets: pd.DataFrame
    settings: pd.DataFrame


@dataclass(frozen=True)
class Measured:
    """What a campaign measured, as the advice needs it."""

    runs: pd.DataFrame  # see `build.usual_runs`
    compared: pd.DataFrame  # `with_speedups` of these
    cells: pd.DataFrame  # `summarise_cells` of those, with their `control`
    spread: pd.DataFrame  # see `spread_of_cells`
    audit: pd.DataFrame  # see `audit_runs`


def advise(measured: Measured, config: Config, cards: Mapping[str, ModelCard]) -> Advice:
    """Return the advice of a campaign; `cards` are the models' by id."""
    runs, audit = measured.runs, measured.audit
    members = {cell: rows for cell, rows in _compared(measured).groupby(CELL)}
    settings = _settings(_candidates(measured.cells), members, measured.spread, cards, config)
    settings_of = runs.groupby("target_model")["target"].unique()
    targets = [
        target
        for model in config.models
        if model in settings_of
        for target in sorted(settings_of[model])
    ]
    ranked = {
        target: _ranked(settings[settings["target"] == target], members, config)
        for target in targets
    }
    gpu = bool((runs["backend"] != Backend.CPU).any())
    answers = []
    for target, own in ranked.items():
        answer = _answer(target, own, _controls(audit, target), config)
        if answer["answer"] == Answer.UNDECIDED:
            rivals = own[own["prompt_set"] == answer["prompt_set"]]
            sides = pd.concat(
                [members[cell] for cell in rivals[CELL].itertuples(index=False, name=None)]
            )
            command = _measuring_command(answer, sides, config)
        else:
            command = _starting_command(answer, config, gpu=gpu)
        answers.append(answer | {"command": command})
    # Frames without rows would turn the columns of the others into objects.
    known = [own for own in ranked.values() if len(own)] or [settings]
    return Advice(
        pd.DataFrame(answers, columns=ADVICE_COLUMNS).astype(dict.fromkeys(_COUNTS, "Int64")),
        pd.concat(known, ignore_index=True)[SETTING_COLUMNS],
    )


def _candidates(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that can be advised.

    Controls cannot: no one uses a target as its own draft, or a draft that knows nothing of it.
    Neither can cells of the study's protocol, whose two sides are two programs.
    """
    if cells.empty:
        return cells
    own = cells["paired"] & (cells["protocol"] == Protocol.PAIRED)
    return cells[own & (cells["control"] == Control.NONE)]


def _compared(measured: Measured) -> pd.DataFrame:
    """Return the compared runs with their baselines' memory, and whether the audit marks either."""
    audit, compared = measured.audit, measured.compared
    telling = audit[~audit["check"].isin(_HARMLESS)]
    marked, impossible = marked_runs(telling), marked_runs(telling, Level.IMPOSSIBLE)
    memory = measured.runs.set_index("run")["peak_rss_bytes"]
    return compared.assign(
        marked=compared["run"].isin(marked) | compared["baseline"].isin(marked),
        impossible=compared["run"].isin(impossible) | compared["baseline"].isin(impossible),
        baseline_rss_bytes=compared["baseline"].map(memory),
    ).astype({"peak_rss_bytes": float, "baseline_rss_bytes": float})


def _controls(audit: pd.DataFrame, target: str) -> Controls:
    checked = audit[(audit["check"] == "controls") & (audit["target"] == target)]
    verdicts = set(checked["verdict"])
    if CheckVerdict.FAIL in verdicts:
        return Controls.FAILED
    return Controls.PASSED if CheckVerdict.PASS in verdicts else Controls.NONE


def _settings(
    candidates: pd.DataFrame,
    members: Mapping[Any, pd.DataFrame],
    spread: pd.DataFrame,
    cards: Mapping[str, ModelCard],
    config: Config,
) -> pd.DataFrame:
    """Return the settings as measured, each by itself."""
    if candidates.empty:
        return pd.DataFrame(columns=SETTING_COLUMNS)
    spread = spread.set_index("cell")
    more = []
    confidence = config.statistics.confidence
    for cell in candidates[CELL].itertuples(index=False, name=None):
        own = members[cell]
        first = own.iloc[0]
        low, high = interval_over_prompts(own, confidence)
        prompts = sorted(set(own["prompt"]))
        more.append(
            {
                **first[_SIDE],
                "prompt_set": ", ".join(prompts),
                "until_end": first["stop"] == Stop.EOS,
                "prompts": len(prompts),
                "other_prompts_low": low,
                "other_prompts_high": high,
                **spread.loc[cell_id(*cell), ["block_sd", "repeats_needed"]],
                "marked": int(own["marked"].sum()),
                "impossible": int(own["impossible"].sum()),
                "draft_bytes": _file_bytes(first["draft_model"], cards),
                "added_rss_bytes": own["peak_rss_bytes"].max() - own["baseline_rss_bytes"].max(),
            }
        )
    return candidates.assign(**pd.DataFrame(more, index=candidates.index)).astype(
        {"repeats_needed": "Int64"}
    )


def _file_bytes(model: str | None, cards: Mapping[str, ModelCard]) -> int | None:
    """Return the size of the file that drafts; None without one, and for a cache of n-grams."""
    return cards[model].size_bytes if model is not None and model in cards else None


def _ranked(own: pd.DataFrame, members: Mapping[Any, pd.DataFrame], config: Config) -> pd.DataFrame:
    """Return a target's settings with joint intervals and standings, in order."""
    if own.empty:
        return own.assign(standing=[])
    sets = [rivals for _, rivals in own.groupby("prompt_set", sort=False)]
    sets.sort(key=_claim, reverse=True)
    return pd.concat([_ranked_rivals(rivals, members, config) for rivals in sets])


def _claim(rivals: pd.DataFrame) -> tuple[bool, int, int, bool]:
    """Return what makes settings on the same prompts the ones that answer; no speed does."""
    prompts = str(rivals["prompt_set"].iloc[0]).split(", ")
    texts = sum(not prompt.startswith(PASSAGE_PREFIX) for prompt in prompts)
    sound, until_end = (rivals["marked"] == 0).any(), rivals["until_end"].iloc[0]
    return bool(sound), texts, len(prompts), bool(until_end)


def _ranked_rivals(
    own: pd.DataFrame, members: Mapping[Any, pd.DataFrame], config: Config
) -> pd.DataFrame:
    """Return settings on the same prompts with joint intervals and standings, the best first."""
    own = own.sort_values(["speedup", *CELL], ascending=[False, *[True] * len(CELL)])
    keys = list(own[CELL].itertuples(index=False, name=None))
    sound = {
        key: members[key] for key, marked in zip(keys, own["marked"], strict=True) if not marked
    }
    joint = joint_intervals(sound, config.statistics.confidence)
    ends = [joint.get(key, NO_INTERVAL) for key in keys]
    own = own.assign(joint_low=[end.low for end in ends], joint_high=[end.high for end in ends])
    slower = _shown_slower(sound, config.statistics.confidence)
    own["standing"] = _standings(own, [key in slower for key in keys])
    order = {standing: rank for rank, standing in enumerate(Standing)}
    return own.sort_values("standing", key=lambda column: column.map(order), kind="stable")


def _shown_slower(cells: Mapping[Any, pd.DataFrame], confidence: float) -> set[Any]:
    """Return the cells that some other cell is shown to be faster than.

    Each is compared with each, one-sided, at the share of the level that all comparisons with one
    cell leave it. The truly fastest is then among the others at that confidence (S. S. Gupta, On
    Some Multiple Decision Rules, Technometrics 7, 1965), whichever it is.
    """
    share = 2 * (1 - confidence) / max(len(cells) - 1, 1)
    means = {cell: log_speedups(members) for cell, members in cells.items()}
    # The fastest come first: most cells are shown to be slower than one of these.
    rivals = sorted(means.items(), key=lambda rival: -fmean(rival[1].values()))
    return {
        cell
        for cell, own in means.items()
        if any(
            ratio_of_means(own, rival, 1 - share).high < 1
            for other, rival in rivals
            if other != cell
        )
    }


def _standings(own: pd.DataFrame, slower: Sequence[bool]) -> list[Standing]:
    """Return the standing of each setting.

    The best is the fastest whose interval lies above 1, or the fastest of all if there is none.
    """
    sound = own[own["marked"] == 0]
    gains = sound[sound["joint_low"] > 1]
    first = (gains if len(gains) else sound).head(1)
    standings = []
    for row, is_slower in zip(own.itertuples(), slower, strict=True):
        if row.marked:
            standings.append(Standing.MARKED)
        elif row.Index in first.index:
            standings.append(Standing.BEST)
        else:
            standings.append(Standing.SLOWER if is_slower else Standing.EQUAL)
    return standings


def _answer(
    target: str, ranked: pd.DataFrame, controls: Controls, config: Config
) -> dict[str, Any]:
    """Return a target's row."""
    # Settings on the prompts that answer come first.
    own = ranked[ranked["prompt_set"] == ranked["prompt_set"].iloc[0]] if len(ranked) else ranked
    sound = own[own["standing"] != Standing.MARKED]
    answer, reason = _judge(own, sound, controls)
    best = {str(key): value.iloc[0] for key, value in sound.items()} if len(sound) else {}
    undecided = answer == Answer.UNDECIDED
    return best | {
        "target": target,
        "answer": answer.value,
        "reason": reason,
        "controls": controls.value,
        "settings": len(sound),
        "set_aside": len(own) - len(sound),
        "equal": int((own["standing"] == Standing.EQUAL).sum()),
        "elsewhere": len(ranked) - len(own),
        "repeats_to_decide": repeats_to_decide(sound, config.statistics) if undecided else None,
    }


def _starting_command(answer: Mapping[str, Any], config: Config, *, gpu: bool) -> str | None:
    """Return the line that starts llama-server as a target's row advises."""
    if answer["answer"] == Answer.UNKNOWN:
        return None
    on = answer["answer"] == Answer.ON
    return launch_line(config, answer["target"], answer if on else None, gpu=gpu)


def _measuring_command(
    answer: Mapping[str, Any], compared: pd.DataFrame, config: Config
) -> str | None:
    """Return the line that would decide a target; None if this campaign cannot be measured on.

    `compared` are the runs of the settings to decide among.
    """
    repeats = answer["repeats_to_decide"]
    if repeats is None or config.campaign.source != "measured":
        return None
    return measuring_line(map(comparison_of, compared["block"]), repeats)


def _judge(own: pd.DataFrame, sound: pd.DataFrame, controls: Controls) -> tuple[Answer, str]:
    if own.empty:
        return Answer.UNKNOWN, "no run with a draft was measured against baselines of its own"
    if controls == Controls.FAILED:
        return Answer.UNKNOWN, "its controls fail, so its other measurements do not count"
    if sound.empty:
        return Answer.UNKNOWN, "the audit marks runs of every setting"
    if sound["joint_low"].isna().all():
        return Answer.UNKNOWN, "every setting was measured once, so no interval is known"
    if sound.iloc[0]["joint_low"] > 1:
        return Answer.ON, "the interval of the best setting is above 1"
    if (sound["joint_high"] < 1).all():
        return Answer.OFF, "the interval of every setting is below 1"
    if (sound["speedup_low"] > 1).any():
        return (
            Answer.UNDECIDED,
            "no interval is above 1 after allowing for the choice among settings",
        )
    return Answer.UNDECIDED, "no interval is above 1, and not every one is below"
