"""Advice for each target of a campaign: whether to switch speculative decoding on, and how.

A setting is a suite, target, draft and γ, measured with the draft model's own acceptance, at the
campaign's temperature, against baselines of its own. The answer is

- *on*, with the fastest setting whose interval for prompts like these lies above 1;
- *on for these prompts*, with the fastest whose interval for these prompts does, if there is no
  such setting;
- *on for looping text*, if more of that setting's text loops than `LIMITS.looping_share`, because
  loops are easy to draft and no other text was measured;
- *off at these γ*, if every setting's own interval lies below 1. All have to lose, so there is no
  choice among them to allow for (R. L. Berger, Multiparameter Hypothesis Testing and Acceptance
  Sampling, Technometrics 24, 1982);
- or *undecided*, with the number of repeats that would decide.

These intervals allow for another session (`intervals.Mean.reach`), the first two also for the
choice among settings. A setting that drafted nothing, or that was beaten before all repeats were
measured (see `contenders`), is neither the fastest nor an obstacle to *off*.

Settings are compared only on the same prompts. The set of prompts that answers is the one with most
whole texts, as people send texts; then the one with most prompts.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.decision import Answer, Ends, Verdict, find_answer, find_ends
from specmoe.analysis.exclusions import apply_exclusions
from specmoe.analysis.follow_up import launch_line, measuring_line, planning_sds, repeats_to_decide
from specmoe.analysis.intervals import Mean, mean_on_other_prompts, mean_speedup, moderated
from specmoe.analysis.labels import without_controls
from specmoe.analysis.noise import session_of
from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import SETTING, usual
from specmoe.audit.checks import flagged_runs
from specmoe.audit.evidence import CheckVerdict, Level
from specmoe.audit.limits import LIMITS
from specmoe.config.block import ARM_COLUMNS, PASSAGE_PREFIX, Protocol
from specmoe.config.engines import Backend
from specmoe.config.schema import Config, Statistics
from specmoe.models.info import ModelInfo
from specmoe.runs.schema import DISTURBED


class Status(StrEnum):
    """What became of a setting among those of its target on the same prompts."""

    BEST = "best"
    COMPARED = "compared"
    BEATEN = "beaten in the first repeat"  # so it was measured no further, see `contenders`
    IDLE = "drafted nothing"  # so nothing says what drafting does
    EXCLUDED = "excluded"  # too many of its pairs are flagged or disturbed, see `find_exclusions`


class Controls(StrEnum):
    """Whether a target's controls, whose outcome is known beforehand, came out as they should."""

    PASSED = "passed"
    FAILED = "failed"
    NONE = "not measured"


# Checks of the audit by which no run is excluded. Those that do not bear on one run's time or text:
# `determinism` is about other repeats, and `controls` counts for the target as a whole. And those
# whose bound is no more than the fastest that was seen of the machine, which a run may exceed.
_HARMLESS = frozenset(
    {"determinism", "controls", "expected_experts", "expected_time", "measured_bandwidth"}
)

# Integer columns that are null where a target has no setting.
_COUNTS = [
    *("more_repeats", "gamma", "runs", "blocks", "prompts", "flagged"),
    *("impossible", "excluded", "pairs", "lost_settings", "idle", "draft_bytes"),
    *("cut", "cut_thinking"),
]
_SETTING_COLUMNS = TABLES["advice_settings"].columns


def advise(
    runs: pd.DataFrame,
    pairs: pd.DataFrame,
    measured: pd.DataFrame,
    audit: pd.DataFrame,
    config: Config,
    infos: Mapping[str, ModelInfo],
    stages: Iterable[Mapping[str, Any]] = (),
) -> dict[str, pd.DataFrame]:
    """Return the tables `advice`, the answer for each target, and `advice_settings`.

    `runs` are those of `summaries.usual`, those that do not count too; `pairs` is `make_pairs`'s
    frame, `measured` that of `summarise`, `audit` that of `audit_runs`; `infos` are the models' by
    id; `stages` are the rows of the last decision of a campaign that was measured in stages.
    Columns:

    - advice: a row for each target, in the order of the campaign's models: answer (`Answer`),
      reason (a sentence), controls (`Controls`), settings (how many were compared on the prompts
      that answer), excluded_settings, idle (how many more are excluded, or drafted nothing),
      lost_settings (of how many more the machine left no undisturbed pair), more_repeats (how many
      more would decide, see `repeats_to_decide`; null unless the answer is undecided), command
      (the line that starts llama-server, or that measures more; null if there is none), and the
      columns of the best setting, null without one.
    - advice_settings: a row for each setting, those on the prompts that answer first, best first:
      columns of `summarise`; of `deciding_intervals`, null if excluded; prompt_set (the prompts'
      ids), prompts (their number); planning_sd, see `planning_sds`; flagged (runs that the audit
      flags, or whose baseline it flags), impossible (those that are more than suspicious),
      unfiltered_high and unusable_prompts, see `apply_exclusions`; draft_bytes (the draft model's
      file); status (`Status`).
    """
    counted = pairs[pairs["counts"]]
    members = {setting: rows for setting, rows in _flagged(usual(counted), audit).groupby(SETTING)}
    # No one uses a control. The study's protocol has two programs for the two arms.
    lost = without_controls(usual(pairs[~pairs["counts"] & (pairs["protocol"] == Protocol.PAIRED)]))
    if len(measured):
        paired = measured["paired"] & (measured["protocol"] == Protocol.PAIRED)
        measured = without_controls(measured[paired])
    candidates, members = apply_exclusions(measured, members, lost, config.statistics)
    settings = _measured_settings(candidates, members, counted, infos)
    targets = [name for name in config.models if name in {*runs["target"]}]
    beaten = {
        tuple(row[name] for name in SETTING) for row in stages if row["verdict"] == Verdict.BEATEN
    }
    gpu = bool((runs["backend"] != Backend.CPU).any())
    ranked, answers = [], []
    for target in targets:
        own = settings[settings["target"] == target]
        sets = [peers for _, peers in own.groupby("prompt_set", sort=False)]
        sets.sort(key=_claim, reverse=True)
        in_order = [_ranked(peers, members, beaten, config) for peers in sets]
        own = pd.concat(in_order) if in_order else own.assign(status=[])
        own_lost = lost[lost["target"] == target]
        answer = _answer(target, own, own_lost, _controls(audit, target), config)
        command = _command(answer, own, members, config, gpu=gpu)
        answers.append(answer | {"command": command})
        ranked.append(own)
    # Frames without rows would turn the columns of the others into objects.
    known = [own for own in ranked if len(own)] or [settings]
    advice = pd.DataFrame(answers, columns=TABLES["advice"].columns)
    return {
        "advice": advice.astype(dict.fromkeys(_COUNTS, "Int64")),
        "advice_settings": pd.concat(known, ignore_index=True)[_SETTING_COLUMNS],
    }


def _flagged(compared: pd.DataFrame, audit: pd.DataFrame) -> pd.DataFrame:
    """Return the compared runs, and whether they or their baselines are flagged."""
    telling = audit[~audit["check"].isin(_HARMLESS)]
    pairs = compared[["run", "baseline"]]
    return compared.assign(
        flagged=pairs.isin(flagged_runs(telling)).any(axis="columns"),
        impossible=pairs.isin(flagged_runs(telling, Level.IMPOSSIBLE)).any(axis="columns"),
    )


def _controls(audit: pd.DataFrame, target: str) -> Controls:
    verdicts = {*audit.loc[(audit["check"] == "controls") & (audit["target"] == target), "verdict"]}
    if CheckVerdict.FAIL in verdicts:
        return Controls.FAILED
    return Controls.PASSED if CheckVerdict.PASS in verdicts else Controls.NONE


def _measured_settings(
    candidates: pd.DataFrame,
    members: Mapping[Any, pd.DataFrame],
    pairs: pd.DataFrame,
    infos: Mapping[str, ModelInfo],
) -> pd.DataFrame:
    """Return the settings as measured, each by itself; `pairs` are all that count."""
    if candidates.empty:
        return pd.DataFrame(columns=_SETTING_COLUMNS)
    keys = _keys(candidates)
    first = [members[key].iloc[0][ARM_COLUMNS].to_dict() for key in keys]
    # Null without a file, and for a cache of n-grams.
    sizes = {model: info.size_bytes for model, info in infos.items()}
    return candidates.assign(
        **pd.DataFrame(first, index=candidates.index),
        prompts=[members[key]["prompt"].nunique() for key in keys],
        planning_sd=planning_sds(pairs).reindex(keys).to_numpy(),
        draft_bytes=candidates["draft_model"].map(sizes),
    )


def _claim(peers: pd.DataFrame) -> tuple[bool, int, int]:
    """Return the key by which settings on the same prompts are the ones that answer."""
    prompts = str(peers["prompt_set"].iloc[0]).split(", ")
    usable = bool((~peers["excluded_setting"]).any())
    texts = sum(not prompt.startswith(PASSAGE_PREFIX) for prompt in prompts)
    return usable, texts, len(prompts)


def _ranked(
    own: pd.DataFrame, members: Mapping[Any, pd.DataFrame], beaten: Collection[Any], config: Config
) -> pd.DataFrame:
    """Return settings on the same prompts with deciding intervals and statuses, the best first."""
    own = own.sort_values(["speedup", *SETTING], ascending=[False, *[True] * len(SETTING)])
    own["idle"] = own["rounds_per_run"] == 0
    own["beaten"] = [key in beaten for key in _keys(own)]
    compared = ~(own["excluded_setting"] | own["idle"])
    counts = compared & ~own["beaten"]
    usable = own[counts]
    # The best is chosen among all that were measured once.
    dropped = int((compared & own["beaten"]).sum())
    settings = [members[key] for key in _keys(usable)]
    deciding = deciding_intervals(settings, config.statistics, dropped).set_index(usable.index)
    own = own.join(deciding)
    best = _best(own[counts]).index
    own["status"] = np.select(
        [own["excluded_setting"], own["idle"], own["beaten"], own.index.isin(best)],
        [Status.EXCLUDED, Status.IDLE, Status.BEATEN, Status.BEST],
        Status.COMPARED,
    )
    return own.sort_values("status", key=lambda found: found.map([*Status].index), kind="stable")


def deciding_intervals(
    settings: Sequence[pd.DataFrame], statistics: Statistics, dropped: int
) -> pd.DataFrame:
    """Return the intervals that decide an answer, a row for each setting; NaN without repeats.

    `settings` are the compared runs of each, `dropped` is how many more the best was chosen among,
    see `contenders`. All allow for another session. simultaneous_low, simultaneous_high: on these
    prompts, after the choice of the best; other_prompts_low, other_prompts_high: the same on
    prompts like these; setting_low, setting_high: on these prompts, without a choice.
    """
    if not settings:
        return pd.DataFrame(columns=Ends._fields, dtype=float)
    these = moderated([*map(mean_speedup, settings)])
    others = [*map(mean_on_other_prompts, settings, these)]
    # The best is chosen among those with an interval.
    repeated = max(sum(not math.isnan(mean.error) for mean in these), 1)
    here, elsewhere = (
        Mean(*np.array([mean[:3] for mean in means], float).T) for means in (these, others)
    )
    choice, session = repeated + dropped, session_of(statistics)
    found = find_ends(here, elsewhere, statistics.confidence, choice, session)
    return pd.DataFrame(found._asdict())


def _best(usable: pd.DataFrame) -> pd.DataFrame:
    """Return the row to advise of settings, the fastest first; none of none.

    It is the first that gains on prompts like these, else on these, else the fastest.
    """
    gains = [usable[usable[low] > 1] for low in ("other_prompts_low", "simultaneous_low")]
    return next((some for some in gains if len(some)), usable).head(1)


def _answer(
    target: str, ranked: pd.DataFrame, lost: pd.DataFrame, controls: Controls, config: Config
) -> dict[str, Any]:
    """Return a target's row; `lost` are its runs that do not count."""
    # Settings on the prompts that answer come first.
    own = ranked[ranked["prompt_set"] == ranked["prompt_set"].iloc[0]] if len(ranked) else ranked
    compared = own[~own["status"].isin([Status.EXCLUDED, Status.IDLE])]
    usable = compared[compared["status"] != Status.BEATEN]
    lost_settings = set(_keys(lost)) - set(_keys(ranked))
    unknown = _unknown(own, usable, controls, disturbed=bool(lost_settings))
    answer, reason = (Answer.UNKNOWN, unknown) if unknown else judge(usable)
    if answer == Answer.OFF:
        unfiltered = own.loc[~(own["idle"] | own["beaten"]), "unfiltered_high"]
        if not (unfiltered < 1).all():
            # Flags fall on fast runs alone: what they leave must not decide that nothing gains.
            answer = Answer.UNDECIDED
            reason = (
                "no interval is above 1, and with the pairs that the audit flags one is not below"
            )
    best = {str(key): value.iloc[0] for key, value in usable.items()} if len(usable) else {}
    undecided = answer == Answer.UNDECIDED
    wanted = repeats_to_decide(usable, config.statistics) if undecided else None
    return best | {
        "target": target,
        "answer": answer.value,
        "reason": reason,
        "controls": controls.value,
        "settings": len(compared),
        "excluded_settings": int((own["status"] == Status.EXCLUDED).sum()),
        "idle": int((own["status"] == Status.IDLE).sum()),
        "lost_settings": len(lost_settings),
        "wanted_repeats": wanted,
        "more_repeats": wanted and wanted - usable["blocks"].min(),
    }


def _command(
    answer: Mapping[str, Any],
    ranked: pd.DataFrame,
    members: Mapping[Any, pd.DataFrame],
    config: Config,
    *,
    gpu: bool,
) -> str | None:
    """Return the line that starts llama-server as advised, or measures more; None if none."""
    if answer["answer"] == Answer.UNDECIDED:
        if config.campaign.source != "measured" or answer["more_repeats"] is None:
            return None
        peers = ranked[ranked["prompt_set"] == answer["prompt_set"]]
        blocks = pd.concat([members[setting]["block"] for setting in _keys(peers)])
        return measuring_line(map(str, blocks), answer["wanted_repeats"])
    if answer["answer"] in (Answer.UNKNOWN, Answer.LOOPING):  # loops are no advice for other text
        return None
    on = answer["answer"] in (Answer.ON, Answer.HERE)
    return launch_line(config, answer["target"], answer if on else None, gpu=gpu)


def _keys(settings: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(settings[SETTING].itertuples(index=False, name=None))


def _unknown(
    own: pd.DataFrame, usable: pd.DataFrame, controls: Controls, *, disturbed: bool
) -> str | None:
    """Return why nothing is known of a target; None if something is."""
    if own.empty and disturbed:
        return f"{DISTURBED} far more than usual during every pair of runs"
    if own.empty:
        return "no run with speculation was measured against baselines of its own"
    if controls == Controls.FAILED:
        return "its controls fail, so its other measurements do not count"
    if usable.empty:
        return "too many runs of every setting are flagged or disturbed, or drafted nothing"
    if usable["simultaneous_low"].isna().all():
        return "every setting was measured once, so no interval is known"
    return None


_REASONS = {
    Answer.ON: "the interval of the best setting is above 1 for other prompts too",
    Answer.HERE: "no gain is shown for other prompts of this kind",
    Answer.LOOPING: "the text loops, so nothing is known of text that does not",
    Answer.OFF: "the interval of every setting by itself is below 1 on these prompts",
    Answer.LITTLE: "no setting can gain more than a tenth, in another session either",
    Answer.UNDECIDED: "for another session, no interval is above 1, nor all below",
}


def judge(usable: pd.DataFrame) -> tuple[Answer, str]:
    """Return the answer of settings on the same prompts, the fastest first, and the reason.

    They have the columns of `deciding_intervals`, and looping (null: unknown).
    """
    ends = ("simultaneous_low", "simultaneous_high", "other_prompts_low", "setting_high")
    answer = Answer(str(find_answer(*(usable[end].to_numpy() for end in ends))))
    loops = _best(usable)["looping"].iloc[0] > LIMITS.looping_share
    if loops and answer in (Answer.ON, Answer.HERE):
        answer = Answer.LOOPING
    if answer == Answer.UNDECIDED and (usable["setting_low"] > 1).any():
        return answer, "no interval is above 1 after allowing for the choice among settings"
    return answer, _REASONS[answer]
