"""Whether to switch speculative decoding on, for each target of a campaign, and with which setting.

A setting is a cell: suite, target, draft and γ, measured with the draft's own acceptance, at the
campaign's temperature, against baselines of its own. The answer is

- *on*, with the fastest setting whose intervals lie above 1, the one for other prompts of the kind
  that was sent, too;
- *on for these prompts*, with the fastest whose interval for the prompts that were sent lies above
  1, if no setting gains on others;
- *on for looping text*, if more of that setting's text loops than `audit.looping_share`, because
  loops are easy to draft and no other text was measured;
- *off at these γ*, if every setting's own interval lies below 1. All have to lose, so there is no
  choice among them to allow for (R. L. Berger, Multiparameter Hypothesis Testing and Acceptance
  Sampling, Technometrics 24, 1982);
- or *undecided*.

Intervals allow for other days too, by `statistics.sitting_spread`: blocks of one day agree more
than days do. A setting that drafted nothing is neither the fastest nor in the way of *off*.

Settings are ranked among those that were measured on the same prompts, as speedups on code and on
prose are no rivals. The set of prompts that answers is the one with most whole texts, because
people send texts; among equals, the one with most prompts, then one whose texts may end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.drafts import with_controls, without_controls
from specmoe.analysis.intervals import (
    Interval,
    joint_intervals,
    log_means,
    log_speedups,
    ratio_of_means,
)
from specmoe.analysis.launch import launch_line, measuring_line
from specmoe.analysis.registry import TABLES
from specmoe.analysis.sound_prompts import on_sound_prompts
from specmoe.analysis.spread import cell_id
from specmoe.analysis.summaries import CELL, drafted_nothing
from specmoe.audit.checks import marked_runs
from specmoe.audit.finding import CheckVerdict, Level
from specmoe.config.backend import Backend
from specmoe.config.block import (
    NO_DRAFT,
    PASSAGE_PREFIX,
    SIDE_COLUMNS,
    Protocol,
    Stop,
    Template,
)
from specmoe.config.matrix import comparison_of
from specmoe.config.schema import Config
from specmoe.models.card import ModelCard
from specmoe.runs.disturbed import DISTURBED, count_excluded, excluded


class Answer(StrEnum):
    """What to do with a target."""

    ON = "switch on"
    HERE = "on for these prompts"
    LOOPING = "on for looping text"
    OFF = "leave off at these γ"
    UNDECIDED = "undecided"
    UNKNOWN = "not known"


class Standing(StrEnum):
    """How a setting compares with the others of its target on the same prompts."""

    BEST = "best"
    EQUAL = "equal"  # no other setting is shown to be faster
    SLOWER = "slower"
    IDLE = "drafted nothing"  # so nothing says what drafting does
    MARKED = "marked"  # the audit marks too many of its rows: set aside


class Sent(StrEnum):
    """How the prompts of a setting were sent, and when its runs ended."""

    CHATS = "chats, until the model ends"
    CUT_CHATS = "chats, to a stated length"
    ENDED_TEXTS = "raw texts, until the model ends"
    TEXTS = "raw texts, to a stated length"
    MIXED = "chats and raw texts"


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
    *("more_repeats", "gamma", "runs", "blocks", "prompts", "repeats_needed", "marked"),
    *("impossible", "excluded", "pairs", "none_left", "idle", "draft_bytes"),
]
# What starts llama-server as a setting was measured, beside its target and γ.
_SIDE = ["method", "draft_model", *SIDE_COLUMNS]
_SETTING_COLUMNS = TABLES["advice_settings"].columns


@dataclass(frozen=True)
class Advice:
    """The answer for each target, and the settings it was chosen from.

    - targets: one row per target, in the order of the campaign's models: answer (`Answer`), reason
      (a sentence), controls (`Controls`), settings (how many were compared on the prompts that
      answer), set_aside (how many more the audit marks), idle (how many more drafted nothing),
      equal (how many have the standing), elsewhere (how many were measured on other prompts),
      none_left (of how many more the machine left no undisturbed pair), more_repeats (how many
      more may decide, see `repeats_for`; null unless the answer is undecided and repeats are left
      to measure), command (what to type next: the line that starts llama-server, or the one that
      measures more; null if there is none), and the columns of the best setting, null without one.
    - settings: one row per setting, those on the prompts that answer first, best first: columns of
      `summarise_cells`; joint_low and joint_high, see `joint_intervals`, over the settings on the
      same prompts that are not set aside, at the level of a look; other_prompts_low and
      other_prompts_high, the same for other prompts; alone_low and alone_high, of the setting by
      itself at that level; whole_high, the high end of speedup with the pairs that the audit marks;
      prompt_set (the prompts' ids), prompts (their number), sent (`Sent`); block_sd and
      repeats_needed (of all pairs), see `spread_of_cells`; marked_prompts (the ids of those with
      marked pairs) and odd_prompts (of those left out altogether), see `sound_prompts`; excluded
      (pairs that the machine disturbed; null if none) of pairs; marked (runs that the audit marks,
      or whose baseline it marks); impossible (those of them that are, or whose baseline is, more
      than implausible);
      draft_bytes (the draft's file); added_rss_bytes (peak of resident memory over that of
      the baselines; null where not recorded); standing (`Standing`).
    """

    targets: pd.DataFrame
    settings: pd.DataFrame


def advise(
    runs: pd.DataFrame,
    compared: pd.DataFrame,
    cells: pd.DataFrame,
    spread: pd.DataFrame,
    audit: pd.DataFrame,
    config: Config,
    cards: Mapping[str, ModelCard],
) -> Advice:
    """Return the advice of a campaign.

    `runs` are those of `build.usual_runs`, those that do not count too; `compared` is
    `with_speedups` of those that do, `cells` `summarise_cells` of that with `prompt_set`, `spread`
    as in `spread_of_cells`, `audit` as in `audit_runs`; `cards` are the models' by id.
    """
    members = {cell: rows for cell, rows in _marked(compared, runs, audit).groupby(CELL)}
    lost = excluded(runs)
    lost = lost[(lost["draft"] != NO_DRAFT) & (lost["protocol"] == Protocol.PAIRED)]
    lost = without_controls(with_controls(lost, config.audit.unrelated_drafts, cards))
    # No one uses a control. The study's protocol has two programs for the two sides.
    if len(cells):
        cells = without_controls(cells[cells["paired"] & (cells["protocol"] == Protocol.PAIRED)])
    candidates = count_excluded(cells, lost, CELL)
    candidates, members = on_sound_prompts(candidates, members, lost, config.statistics)
    settings = _settings(candidates, members, spread, cards, config)
    settings_of = runs.groupby("target_model")["target"].unique()
    targets = [name for model in config.models for name in sorted(settings_of.get(model, []))]
    gpu = bool((runs["backend"] != Backend.CPU).any())
    ranked, answers = [], []
    for target in targets:
        own = settings[settings["target"] == target]
        sets = [rivals for _, rivals in own.groupby("prompt_set", sort=False)]
        sets.sort(key=_claim, reverse=True)
        in_order = [_ranked(rivals, members, config) for rivals in sets]
        own = pd.concat(in_order) if in_order else own.assign(standing=[])
        own_lost = lost[lost["target"] == target]
        answer = _answer(target, own, own_lost, _controls(audit, target), config)
        command = _command(answer, own, members, config, gpu=gpu)
        answers.append(answer | {"command": command})
        ranked.append(own)
    # Frames without rows would turn the columns of the others into objects.
    known = [own for own in ranked if len(own)] or [settings]
    return Advice(
        pd.DataFrame(answers, columns=TABLES["advice"].columns).astype(
            dict.fromkeys(_COUNTS, "Int64")
        ),
        pd.concat(known, ignore_index=True)[_SETTING_COLUMNS],
    )


def _marked(compared: pd.DataFrame, runs: pd.DataFrame, audit: pd.DataFrame) -> pd.DataFrame:
    """Return the compared runs with their baselines' memory, and whether the audit marks either."""
    telling = audit[~audit["check"].isin(_HARMLESS)]
    pairs = compared[["run", "baseline"]]
    marked, impossible = (
        pairs.isin(found).any(axis="columns")
        for found in (marked_runs(telling), marked_runs(telling, Level.IMPOSSIBLE))
    )
    memory = runs.set_index("run")["peak_rss_bytes"]
    return compared.assign(
        marked=marked,
        impossible=impossible,
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
        return pd.DataFrame(columns=_SETTING_COLUMNS)
    needed = spread.set_index("cell")["repeats_needed"]
    more = []
    for cell in _keys(candidates):
        own = members[cell]
        first = own.iloc[0]
        draft = cards.get(first["draft_model"])
        more.append(
            {
                **first[_SIDE],
                "until_end": first["stop"] == Stop.EOS,
                "prompts": own["prompt"].nunique(),
                "sent": _sent(own, config),
                "block_sd": log_means(own).std(),
                "repeats_needed": needed[cell_id(*cell)],
                # Null without a file, and for a cache of n-grams.
                "draft_bytes": draft.size_bytes if draft else None,
                "added_rss_bytes": own["peak_rss_bytes"].max() - own["baseline_rss_bytes"].max(),
            }
        )
    return candidates.assign(**pd.DataFrame(more, index=candidates.index)).astype(
        {"repeats_needed": "Int64"}
    )


def _sent(own: pd.DataFrame, config: Config) -> Sent:
    """Return how the prompts of a setting's runs were sent."""
    named = [config.workloads.get(name) for name in own["workload"].dropna().unique()]
    workloads = [workload for workload in named if workload is not None]
    templates = {workload.template for workload in workloads}
    if own["workload"].isna().any():
        templates.add(Template.RAW)
    until_end = own["stop"].iloc[0] == Stop.EOS
    if len(templates) > 1:
        return Sent.MIXED
    if templates == {Template.CHAT}:
        return Sent.CHATS if until_end else Sent.CUT_CHATS
    return Sent.ENDED_TEXTS if until_end else Sent.TEXTS


def _claim(rivals: pd.DataFrame) -> tuple[bool, int, int, bool]:
    """Return what makes settings on the same prompts the ones that answer."""
    prompts = str(rivals["prompt_set"].iloc[0]).split(", ")
    sound = bool((~rivals["aside"]).any())
    texts = sum(not prompt.startswith(PASSAGE_PREFIX) for prompt in prompts)
    return sound, texts, len(prompts), bool(rivals["until_end"].iloc[0])


def look_confidence(confidence: float) -> float:
    """Return the level of the intervals that decide, such that a wrong answer has `confidence`.

    Who reads *undecided* measures more and looks again, and so has a second chance of a wrong
    answer: a look has four fifths of the error that is allowed.
    """
    return 1 - 0.8 * (1 - confidence)


def _ranked(own: pd.DataFrame, members: Mapping[Any, pd.DataFrame], config: Config) -> pd.DataFrame:
    """Return settings on the same prompts with joint intervals and standings, the best first."""
    own = own.sort_values(["speedup", *CELL], ascending=[False, *[True] * len(CELL)])
    keys = _keys(own)
    own["idle"] = [drafted_nothing(members[key]) for key in keys]
    counts = ~(own["aside"] | own["idle"])
    sound = {key: members[key] for key, one in zip(keys, counts, strict=True) if one}
    confidence = look_confidence(config.statistics.confidence)
    between_days = config.statistics.sitting_spread**2
    own = _with_intervals(own, keys, deciding_intervals(sound, confidence, between_days))
    alike = _with_intervals(own, keys, deciding_intervals(sound, confidence))[counts]
    own["this_day"] = (
        judge(alike, config.audit.looping_share)[0] if alike["joint_low"].notna().any() else None
    )
    slower = _shown_slower(sound, confidence)
    own["standing"] = np.select(
        [
            own["aside"],
            own["idle"],
            own.index.isin(_best(own[counts]).index),
            [key in slower for key in keys],
        ],
        [Standing.MARKED, Standing.IDLE, Standing.BEST, Standing.SLOWER],
        Standing.EQUAL,
    )
    order = {standing: rank for rank, standing in enumerate(Standing)}
    return own.sort_values("standing", key=lambda column: column.map(order), kind="stable")


def _with_intervals(
    own: pd.DataFrame, keys: Sequence[Any], intervals: pd.DataFrame
) -> pd.DataFrame:
    of_own = intervals.reindex(pd.Index(keys, tupleize_cols=False))
    return own.assign(**{str(name): of_own[name].to_numpy() for name in of_own})


def deciding_intervals(
    cells: Mapping[Any, pd.DataFrame], confidence: float, known: float = 0.0
) -> pd.DataFrame:
    """Return the intervals that decide an answer, a row for each cell; see `Advice.settings`.

    `known` is a variance that blocks do not show, see `joint_intervals`.
    """
    kinds = {
        "joint": joint_intervals(cells, confidence, known=known),
        "other_prompts": joint_intervals(cells, confidence, other_prompts=True, known=known),
        "alone": {
            cell: joint_intervals({cell: own}, confidence, known=known)[cell]
            for cell, own in cells.items()
        },
    }
    ends = {
        f"{kind}_{end}": [getattr(its[cell], end) for cell in cells]
        for kind, its in kinds.items()
        for end in Interval._fields
    }
    return pd.DataFrame(ends, index=pd.Index(list(cells), tupleize_cols=False), dtype=float)


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


def _best(sound: pd.DataFrame) -> pd.DataFrame:
    """Return the row to advise of settings, the fastest first; none of none.

    It is the first that gains on other prompts too, else on those that were sent, else the fastest.
    """
    gains = sound[sound["joint_low"] > 1]
    everywhere = gains[gains["other_prompts_low"] > 1]
    return next((some for some in (everywhere, gains) if len(some)), sound).head(1)


def _answer(
    target: str, ranked: pd.DataFrame, lost: pd.DataFrame, controls: Controls, config: Config
) -> dict[str, Any]:
    """Return a target's row; `lost` are its runs that do not count."""
    # Settings on the prompts that answer come first.
    own = ranked[ranked["prompt_set"] == ranked["prompt_set"].iloc[0]] if len(ranked) else ranked
    aside, idle = ((own["standing"] == kind).sum() for kind in (Standing.MARKED, Standing.IDLE))
    sound = own[~own["standing"].isin([Standing.MARKED, Standing.IDLE])]
    none_left = set(_keys(lost)) - set(_keys(ranked))
    unknown = _unknown(own, sound, controls, disturbed=bool(none_left))
    answer, reason = (
        (Answer.UNKNOWN, unknown) if unknown else judge(sound, config.audit.looping_share)
    )
    of_days = answer == Answer.UNDECIDED and sound["this_day"].iloc[0] != answer
    if of_days:
        reason = "the intervals decide, but another day may differ by more"
    if answer == Answer.OFF and not (own.loc[~own["idle"], "whole_high"] < 1).all():
        # Marks fall on fast rows alone, so what they leave must not decide that nothing gains.
        answer = Answer.UNDECIDED
        reason = "no interval is above 1, and with the pairs that the audit marks one is not below"
    nothing = {"excluded": len(lost) or None, "pairs": len(lost)} if ranked.empty else {}
    best: dict[str, Any] = (
        {str(key): value.iloc[0] for key, value in sound.items()} if len(sound) else nothing
    )
    more = None
    # More repeats make the interval of a day narrower, and tell nothing of another.
    if answer == Answer.UNDECIDED and not of_days:
        wanted = min(best["repeats_needed"], config.statistics.repeats_limit)
        more = wanted - best["blocks"] if wanted > best["blocks"] else None
    return best | {
        "target": target,
        "answer": answer.value,
        "reason": reason,
        "controls": controls.value,
        "settings": len(sound),
        "set_aside": int(aside),
        "idle": int(idle),
        "none_left": len(none_left),
        "equal": int((own["standing"] == Standing.EQUAL).sum()),
        "elsewhere": len(ranked) - len(own),
        "more_repeats": more,
    }


def _command(
    answer: Mapping[str, Any],
    ranked: pd.DataFrame,
    members: Mapping[Any, pd.DataFrame],
    config: Config,
    *,
    gpu: bool,
) -> str | None:
    """Return the line that starts llama-server as advised, or measures more; None if none.

    What pays on looping text is no advice for other text.
    """
    if answer["answer"] == Answer.UNDECIDED:
        if config.campaign.source != "measured" or answer["more_repeats"] is None:
            return None
        rivals = ranked[ranked["prompt_set"] == answer["prompt_set"]]
        blocks = pd.concat([members[cell]["block"] for cell in _keys(rivals)])
        repeats = int(answer["blocks"] + answer["more_repeats"])
        return measuring_line(map(comparison_of, blocks), repeats)
    if answer["answer"] in (Answer.UNKNOWN, Answer.LOOPING):
        return None
    on = answer["answer"] in (Answer.ON, Answer.HERE)
    return launch_line(config, answer["target"], answer if on else None, gpu=gpu)


def _keys(cells: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(cells[CELL].itertuples(index=False, name=None))


def _unknown(
    own: pd.DataFrame, sound: pd.DataFrame, controls: Controls, *, disturbed: bool
) -> str | None:
    """Return why nothing is known of a target; None if something is."""
    if own.empty:
        return (
            f"{DISTURBED} during every pair of runs, at every attempt"
            if disturbed
            else "no run with a draft was measured against baselines of its own"
        )
    if controls == Controls.FAILED:
        return "its controls fail, so its other measurements do not count"
    if sound.empty:
        idle = (own["standing"] == Standing.IDLE).any()
        return (
            "no setting that counts drafted anything on these prompts"
            if idle
            else "the audit marks too many runs of every setting"
        )
    if sound["joint_low"].isna().all():
        return "every setting was measured once, so no interval is known"
    return None


def judge(sound: pd.DataFrame, looping_share: float) -> tuple[Answer, str]:
    """Return the answer of settings on the same prompts, the fastest first, and the reason.

    They have the columns of `deciding_intervals`, and looping (null: unknown).
    """
    best = _best(sound).iloc[0]
    if best["joint_low"] > 1:
        if best["looping"] > looping_share:
            return Answer.LOOPING, "the text loops, so nothing is known of text that does not"
        if best["other_prompts_low"] > 1:
            return Answer.ON, "the interval of the best setting is above 1 for other prompts too"
        return Answer.HERE, "no gain is shown for other prompts of this kind"
    if (sound["alone_high"] < 1).all():
        return (
            Answer.OFF,
            "the interval of every setting by itself is below 1 on these prompts",
        )
    if (sound["alone_low"] > 1).any():
        return (
            Answer.UNDECIDED,
            "no interval is above 1 after allowing for the choice among settings",
        )
    return Answer.UNDECIDED, "no interval is above 1, and not every one is below"
