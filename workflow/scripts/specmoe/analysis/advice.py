"""Whether to switch speculative decoding on, for each target of a campaign, and with which setting.

A setting is a cell: suite, target, draft and γ, measured with drafts accepted for what they are, at
the campaign's temperature, against baselines of its own. What is advised is the fastest setting of
which the rows say that it gains; that they do not say so is no proof that it loses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd

from specmoe.analysis.controls import Control, digests_of, with_controls
from specmoe.analysis.intervals import Interval, interval_over_prompts, joint_intervals
from specmoe.analysis.launch import launch_line
from specmoe.analysis.spread import spread_of_cells
from specmoe.analysis.summaries import CELL, summarise_cells, unpaired_baselines, with_speedups
from specmoe.audit.finding import Verdict
from specmoe.config.backend import Backend
from specmoe.config.block import Protocol
from specmoe.config.schema import Config


class Answer(StrEnum):
    """What to do with a target."""

    ON = "switch on"
    OFF = "leave off"
    UNKNOWN = "not known"


class Standing(StrEnum):
    """What a setting is among those of its target."""

    BEST = "best"
    EQUAL = "equal"  # its interval overlaps the best one's
    SLOWER = "slower"
    MARKED = "marked"  # the audit says its rows cannot be what they say: set aside


class Controls(StrEnum):
    """What the runs whose outcome is known beforehand say of a target's measurements."""

    PASSED = "passed"
    FAILED = "failed"
    NONE = "not measured"


# Checks of the audit that say nothing of how long a run took or what it gave: `determinism` is
# about other repeats, and `controls` counts for the target as a whole.
_HARMLESS = frozenset({"determinism", "controls"})

_SETTING = [*CELL, "method"]
_SHOWN = [
    "runs",
    "blocks",
    "tokens_per_second",
    "baseline_tokens_per_second",
    "acceptance_rate",
    "speedup",
    "speedup_low",
    "speedup_high",
]
# What stays whole where a target has no setting.
_COUNTS = ["gamma", "runs", "blocks", "prompts", "repeats_needed", "marked", "draft_bytes"]
SETTING_COLUMNS = [
    *_SETTING,
    *_SHOWN,
    *("joint_low", "joint_high", "prompts", "other_prompts_low", "other_prompts_high"),
    *("block_sd", "repeats_needed", "marked", "draft_bytes", "added_rss_bytes", "standing"),
]
ADVICE_COLUMNS = [
    *("target", "answer", "reason", "controls", "settings", "set_aside", "equal", "command"),
    *[column for column in SETTING_COLUMNS if column not in ("target", "standing")],
]


@dataclass(frozen=True)
class Advice:
    """The answer for each target, and the settings that it was chosen from.

    - targets: one row per target, in the order of the campaign's models, ADVICE_COLUMNS: target,
      answer (`Answer`), reason (a sentence), controls (`Controls`), settings (how many were
      compared), set_aside (how many more the audit marks), equal (how many of those compared
      cannot be told apart from the best), command (the line that starts llama-server as advised,
      see `launch`; null if the answer is not known), and the columns of the best setting, null
      without one.
    - settings: one row per setting, best first within a target, SETTING_COLUMNS: those of
      `summarise_cells`; joint_low and joint_high, see `joint_intervals`, over the target's settings
      that are not set aside; prompts, and the interval for other ones, see `interval_over_prompts`;
      block_sd and repeats_needed, see `spread_of_cells`; marked (runs that the audit marks, or
      whose baseline it marks); draft_bytes (the draft's file); added_rss_bytes (peak of resident
      memory over that of the baselines; null where not recorded); standing (`Standing`).
    """

    targets: pd.DataFrame
    settings: pd.DataFrame


def advise(
    runs: pd.DataFrame,
    config: Config,
    cards: Mapping[str, Mapping[str, Any]],
    audit: pd.DataFrame,
) -> Advice:
    """Return the advice of a campaign.

    `runs` are `build.usual_runs`, `cards` the model cards by id, `audit` is `audit_runs`'s
    frame.
    """
    compared = _candidates(runs, config, cards)
    settings = _settings(compared, runs, config, cards, _spoiled(audit))
    targets = [model for model in config.models if model in set(runs["target"])]
    ranked = {
        target: _ranked(settings[settings["target"] == target], compared, config)
        for target in targets
    }
    gpu = bool((runs["backend"] != Backend.CPU).any())
    answers = [_answer(target, own, _controls(audit, target)) for target, own in ranked.items()]
    answers = [answer | {"command": _command(answer, config, gpu=gpu)} for answer in answers]
    # Frames without rows would make objects of the columns of the others.
    known = [own for own in ranked.values() if len(own)] or [settings]
    return Advice(
        pd.DataFrame(answers, columns=ADVICE_COLUMNS).astype(dict.fromkeys(_COUNTS, "Int64")),
        pd.concat(known, ignore_index=True)[SETTING_COLUMNS],
    )


def _candidates(
    runs: pd.DataFrame, config: Config, cards: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the runs that a setting could be advised by, with their speedups.

    Controls are none: a target is no draft for itself, nor is one that knows nothing of it. The
    study's protocol is left out, whose two sides are two programs.
    """
    compared = with_speedups(runs)
    own = compared["paired"].astype(bool) & (compared["protocol"] == Protocol.PAIRED)
    told = with_controls(compared[own], config.audit.unrelated_drafts, digests_of(cards))
    return told if told.empty else told[told["control"] == Control.NONE]


def _spoiled(audit: pd.DataFrame) -> set[str]:
    """Return the runs that cannot be measurements of what they say they measure."""
    failed = (audit["verdict"] == Verdict.FAIL) & ~audit["check"].isin(_HARMLESS)
    return set(audit.loc[failed, "run"])


def _controls(audit: pd.DataFrame, target: str) -> Controls:
    checked = audit[(audit["check"] == "controls") & (audit["target"] == target)]
    verdicts = set(checked["verdict"])
    if Verdict.FAIL in verdicts:
        return Controls.FAILED
    return Controls.PASSED if Verdict.PASS in verdicts else Controls.NONE


def _settings(
    compared: pd.DataFrame,
    runs: pd.DataFrame,
    config: Config,
    cards: Mapping[str, Mapping[str, Any]],
    spoiled: set[str],
) -> pd.DataFrame:
    """Return the settings as measured, each for itself."""
    if compared.empty:
        return pd.DataFrame(columns=SETTING_COLUMNS)
    cells = summarise_cells(compared, unpaired_baselines(runs), config.statistics, _SETTING)
    spread = spread_of_cells(compared, config.statistics)
    memory = runs.set_index("run")["peak_rss_bytes"].astype(float)
    more = []
    for setting, members in compared.groupby(_SETTING):
        low, high = interval_over_prompts(members, config.statistics)
        marked = members["run"].isin(spoiled) | members["baseline"].isin(spoiled)
        more.append(
            dict(zip(_SETTING, setting, strict=True))
            | {
                "prompts": members["prompt"].nunique(),
                "other_prompts_low": low,
                "other_prompts_high": high,
                "marked": int(marked.sum()),
                "draft_bytes": cards[members["draft"].iloc[0]]["size_bytes"],
                "added_rss_bytes": memory[members["run"]].max() - memory[members["baseline"]].max(),
            }
        )
    joined = cells.merge(pd.DataFrame(more), on=_SETTING, validate="1:1")
    return joined.drop(columns="block_sd").merge(
        spread[[*CELL, "block_sd", "repeats_needed"]], on=CELL, validate="1:1"
    )


def _ranked(own: pd.DataFrame, compared: pd.DataFrame, config: Config) -> pd.DataFrame:
    """Return a target's settings with joint intervals and standings, the best first."""
    if own.empty:
        return own.assign(standing=[])
    own = own.sort_values(["speedup", *CELL], ascending=[False, *[True] * len(CELL)])
    of_cell = {cell: members for cell, members in compared.groupby(CELL)}
    keys = list(own[CELL].itertuples(index=False, name=None))
    sound = {
        str(key): of_cell[key]
        for key, marked in zip(keys, own["marked"], strict=True)
        if not marked
    }
    joint = joint_intervals(sound, config.statistics)
    ends = [joint.get(str(key), Interval(float("nan"), float("nan"))) for key in keys]
    own = own.assign(joint_low=[end.low for end in ends], joint_high=[end.high for end in ends])
    own["standing"] = _standings(own)
    order = {standing: rank for rank, standing in enumerate(Standing)}
    return own.sort_values("standing", key=lambda column: column.map(order), kind="stable")


def _standings(own: pd.DataFrame) -> list[Standing]:
    """Return the standing of each setting; the best is the fastest that gains, or else of all.

    A fast setting with a wide interval may gain or not; one that gains for sure comes before it.
    """
    sound = own[own["marked"] == 0]
    gains = sound[sound["joint_low"] > 1]
    first = (gains if len(gains) else sound).head(1)
    threshold = first["joint_low"].max()
    standings = []
    for row in own.itertuples():
        if row.marked:
            standings.append(Standing.MARKED)
        elif row.Index in first.index:
            standings.append(Standing.BEST)
        # Without intervals nothing can be told apart.
        elif row.joint_high < threshold:
            standings.append(Standing.SLOWER)
        else:
            standings.append(Standing.EQUAL)
    return standings


def _answer(target: str, own: pd.DataFrame, controls: Controls) -> dict[str, Any]:
    """Return a target's row."""
    sound = own[own["standing"] != Standing.MARKED]
    answer, reason = _judge(own, sound, controls)
    best = {str(key): value.iloc[0] for key, value in sound.items()} if len(sound) else {}
    return best | {
        "target": target,
        "answer": answer.value,
        "reason": reason,
        "controls": controls.value,
        "settings": len(sound),
        "set_aside": len(own) - len(sound),
        "equal": int((own["standing"] == Standing.EQUAL).sum()),
    }


def _command(answer: Mapping[str, Any], config: Config, *, gpu: bool) -> str | None:
    """Return the line that starts llama-server as a target's row advises."""
    if answer["answer"] == Answer.UNKNOWN:
        return None
    on = answer["answer"] == Answer.ON
    speculation = {key: answer[key] for key in ("draft", "method", "gamma")} if on else {}
    return launch_line(config, answer["target"], gpu=gpu, **speculation)


def _judge(own: pd.DataFrame, sound: pd.DataFrame, controls: Controls) -> tuple[Answer, str]:
    if own.empty:
        return Answer.UNKNOWN, "no run with a draft was measured against baselines of its own"
    if controls == Controls.FAILED:
        return Answer.UNKNOWN, "its controls fail, so nothing measured beside them counts"
    if sound.empty:
        return Answer.UNKNOWN, "the audit marks runs of every setting"
    if sound["joint_low"].isna().all():
        return Answer.UNKNOWN, "every setting was measured once, so no interval is known"
    best = sound.iloc[0]
    if best["joint_low"] > 1:
        return Answer.ON, "the interval of the best setting lies above 1"
    if sound["joint_high"].max() < 1:
        return Answer.OFF, "the interval of every setting lies below 1"
    if (sound["speedup_low"] > 1).any():
        return Answer.OFF, "no interval lies above 1 once the choice among settings is allowed for"
    return Answer.OFF, "no setting's interval lies above 1"
