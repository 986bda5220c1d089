"""Advice for each target of a campaign: whether to switch speculative decoding on, and how.

A setting is a suite, target, draft and γ, measured with the draft model's own acceptance, at the
campaign's temperature, against baselines of its own. `decision` says which answer the settings
give. Of a gain, the fastest setting is named whose interval for prompts like these lies above 1,
else that for these prompts. It is *on for looping text* if more of that setting's text loops than
`LIMITS.looping_share`, because loops are easy to draft and no other text was measured.

Settings are compared only on the same prompts: those of their suite and target. The set of prompts
that answers is the one with most whole texts, as people send texts, then the one with most prompts;
it does not depend on what can be compared in the end. A setting that hardly drafts, or was beaten
and measured no further (see `contenders`), is neither the fastest nor an obstacle to *off*.

What cannot be compared, because its pairs were lost to other load or excluded, is counted in the
answer. The answer is *not known* where that is more than what is left: this is then a minority that
load and flags chose, and flags choose by speed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.decision import (
    LITTLE,
    Answer,
    Ends,
    Verdict,
    decide,
    find_answer,
)
from specmoe.analysis.exclusions import apply_exclusions, at_all_prompts
from specmoe.analysis.follow_up import Need, launch_line, measuring_line, what_helps
from specmoe.analysis.intervals import mean_on_other_prompts, mean_speedup, moderated, stacked
from specmoe.analysis.labels import without_controls
from specmoe.analysis.noise import session_of
from specmoe.analysis.registry import TABLES, records
from specmoe.analysis.summaries import SETTING, is_idle, usual
from specmoe.audit.checks import flagged_runs
from specmoe.audit.evidence import CheckVerdict, Level
from specmoe.audit.limits import LIMITS
from specmoe.config.block import ARM_COLUMNS, MEASURED_BY, PASSAGE_PREFIX, Protocol
from specmoe.config.engines import Backend
from specmoe.config.schema import Config
from specmoe.models.info import ModelInfo
from specmoe.runs.schema import DISTURBED


class Status(StrEnum):
    """What became of a setting among those of its target on the same prompts."""

    BEST = "best"
    COMPARED = "compared"
    BEATEN = "beaten"  # so it was measured no further, see `contenders`
    IDLE = "hardly drafts"  # see `summaries.is_idle`
    EXCLUDED = "excluded"  # too many of its pairs are flagged or disturbed, see `is_excluded`
    LOST = "lost to other load"  # of all its pairs


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
    *("not_compared", "beside_failed", "more_repeats", "gamma", "runs", "blocks", "repeats"),
    *("prompts", "flagged", "impossible", "excluded", "pairs", "draft_bytes", "cut"),
    "cut_thinking",
]
# A larger share of settings that are not compared leaves nothing known: what is left is a minority.
MOST_MISSING = 0.5
_SETTING_COLUMNS = TABLES["advice_settings"].columns


def advise(
    runs: pd.DataFrame,
    pairs: pd.DataFrame,
    measured: pd.DataFrame,
    audit: pd.DataFrame,
    config: Config,
    infos: Mapping[str, ModelInfo],
    stages: Iterable[Mapping[str, Any]] = (),
    beside: pd.DataFrame | None = None,
) -> dict[str, pd.DataFrame]:
    """Return the tables `advice`, the answer for each target, and `advice_settings`.

    `runs` are those of `summaries.usual`, those that do not count too; `pairs` is `make_pairs`'s
    frame, `measured` that of `summarise`, `audit` that of `audit_runs`; `infos` are the models' by
    id; `stages` are the rows of the last decision of a campaign that was measured in stages,
    `beside` is `baselines_beside`'s frame. Columns:

    - advice: a row for each target, in the order of the campaign's models: answer (`Answer`),
      reason (a sentence), controls (`Controls`); settings, idle, excluded_settings,
      lost_settings (how many of the settings on the prompts that answer were compared, hardly
      draft, are excluded, lost all pairs), not_compared (of the last two, and of what was not
      tried for lack of minutes; null for none) and sent_settings (of all); beside_failed (how
      many settings have baselines beside them that differ, see `baselines_beside`; null where
      they share theirs); needs (`Need`) and more_repeats, see `what_helps`; command (the line
      that starts llama-server, or that measures more; null if there is none), and the columns
      of the best setting, null without one.
    - advice_settings: a row for each setting, those on the prompts that answer first, best first:
      columns of `summarise`, at all prompts (see `at_all_prompts`); of `deciding`, null
      if not compared, and as unfiltered_high and unfiltered_little two high ends with the pairs
      that are flagged; prompt_set (the prompts' ids), prompts (their number); repeats; flagged
      (runs that the audit flags, or whose baseline it flags), impossible (those that are more than
      suspicious), lacking_prompts, see `apply_exclusions`; draft_bytes (the draft model's file);
      status (`Status`).
    """
    # No one uses a control. The study's protocol has two programs for the two arms.
    own = without_controls(usual(pairs[pairs["protocol"] == Protocol.PAIRED]))
    counted, lost = own[own["counts"]], own[~own["counts"]]
    members = {setting: rows for setting, rows in _flagged(counted, audit).groupby(SETTING)}
    if len(measured):
        paired = measured["paired"] & (measured["protocol"] == Protocol.PAIRED)
        measured = _on_prompts(without_controls(measured[paired]), own)
    settings, left = apply_exclusions(measured, members, config.statistics)
    if settings.empty:
        settings = pd.DataFrame(columns=[*_SETTING_COLUMNS, "excluded_setting"])
    # Null without a file, and for a cache of n-grams.
    sizes = {model: info.size_bytes for model, info in infos.items()}
    settings["draft_bytes"] = settings["draft_model"].map(sizes)
    at_usual = [row for row in stages if row.get("level") is None]
    verdicts = {tuple(row[name] for name in SETTING): row["verdict"] for row in at_usual}
    beaten = {key for key, verdict in verdicts.items() if verdict == Verdict.BEATEN}
    settings["status"] = Status.COMPARED
    settings.loc[[key in beaten for key in _keys(settings)], "status"] = Status.BEATEN
    settings.loc[is_idle(settings), "status"] = Status.IDLE
    settings.loc[settings["excluded_setting"].astype(bool), "status"] = Status.EXCLUDED
    settings = _with_lost(settings, lost[[key not in members for key in _keys(lost)]], own)
    # The minutes may end before a contender has its turn.
    waiting = {*verdicts} - {*_keys(own)}
    untried = Counter(
        key[SETTING.index("target")]
        for key in waiting
        if verdicts[key] in (Verdict.UNTRIED, Verdict.CONTENDER)
    )
    controlled = pd.DataFrame() if beside is None else beside
    failed = controlled.groupby("target")["failed"].sum().to_dict() if len(controlled) else {}
    gpu = bool((runs["backend"] != Backend.CPU).any())
    ranked, answers = [], []
    for target in (name for name in config.models if name in {*runs["target"]}):
        own = settings[settings["target"] == target]
        sets = [peers for _, peers in own.groupby("prompt_set", sort=False)]
        sets.sort(key=_claim, reverse=True)
        in_order = [_ranked(peers, left, members, config) for peers in sets]
        own = pd.concat(in_order) if in_order else own
        answer = _answer(target, own, _controls(audit, target), untried[target], config)
        answer |= {"beside_failed": failed.get(target)}
        answers.append(answer | {"command": _command(answer, config, gpu=gpu)})
        ranked.append(own)
    # Frames without rows would turn the columns of the others into objects.
    some = [own for own in ranked if len(own)] or [settings]
    advice = pd.DataFrame(answers, columns=TABLES["advice"].columns)
    return {
        "advice": advice.astype(dict.fromkeys(_COUNTS, "Int64")),
        "advice_settings": pd.concat(some, ignore_index=True),
    }


def _on_prompts(settings: pd.DataFrame, sent: pd.DataFrame) -> pd.DataFrame:
    """Return settings whose prompt_set are the prompts that their suite sent to their target.

    A setting may lack some, as the machine was disturbed, a run failed or the minutes ended.
    """
    places = ["suite", "target"]
    prompts = sent.groupby(places)["prompt"].agg(lambda ids: ", ".join(sorted({*ids})))
    of_settings = prompts.reindex(pd.MultiIndex.from_frame(settings[places]))
    return settings.assign(prompt_set=of_settings.to_numpy())


def _with_lost(settings: pd.DataFrame, gone: pd.DataFrame, sent: pd.DataFrame) -> pd.DataFrame:
    """Return settings, and those of which no pair counts; `gone` has their runs."""
    if gone.empty:
        return settings
    pairs = gone.groupby(SETTING)["run"].transform("size")
    rows = gone.assign(pairs=pairs, excluded=pairs, flagged=0, impossible=0, lacking_prompts="")
    columns = [*SETTING, *MEASURED_BY, "method", "draft_model", *ARM_COLUMNS, "pairs", "excluded"]
    rows = rows.drop_duplicates(SETTING)[[*columns, "flagged", "impossible", "lacking_prompts"]]
    rows = _on_prompts(rows, sent).assign(status=Status.LOST)
    columns = [*dict.fromkeys([*settings, *rows])]
    return pd.DataFrame([*records(settings), *records(rows)], columns=columns)


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


def _claim(peers: pd.DataFrame) -> tuple[int, int]:
    """Return the key by which settings on the same prompts are the ones that answer."""
    prompts = str(peers["prompt_set"].iloc[0]).split(", ")
    return sum(not prompt.startswith(PASSAGE_PREFIX) for prompt in prompts), len(prompts)


def _ranked(
    own: pd.DataFrame,
    left: Mapping[Any, pd.DataFrame],
    members: Mapping[Any, pd.DataFrame],
    config: Config,
) -> pd.DataFrame:
    """Return settings on the same prompts with what decides, the best first.

    `left` are the runs of each that are compared, `members` those with the flagged ones.
    """
    own = own.sort_values(["speedup", *SETTING], ascending=[False, *[True] * len(SETTING)])
    # The best is chosen among all that were measured once.
    dropped = int((own["status"] == Status.BEATEN).sum())
    own = own.assign(**deciding(own[own["status"] == Status.COMPARED], left, dropped, config))
    flagged = own[own["status"].isin([Status.COMPARED, Status.EXCLUDED]) & (own["flagged"] > 0)]
    with_flagged = at_all_prompts({key: members[key] for key in _keys(flagged)})
    every = deciding(flagged, with_flagged, dropped, config)
    own["unfiltered_high"] = every["setting_high"]
    own["unfiltered_little"] = every["simultaneous_high"]
    own.loc[_best(own[own["status"] == Status.COMPARED]).index, "status"] = Status.BEST
    return own.sort_values("status", key=lambda found: found.map([*Status].index), kind="stable")


def deciding(
    own: pd.DataFrame, members: Mapping[Any, pd.DataFrame], dropped: int, config: Config
) -> pd.DataFrame:
    """Return what decides an answer, a row for each setting, the fastest first.

    `members` has the compared runs of each, `dropped` is how many more the best was chosen among,
    see `contenders`. Intervals allow for another session, and for the repeats after which a
    campaign may end; NaN without repeats. simultaneous_low, simultaneous_high: on these prompts,
    after the choice of the best; other_prompts_low, other_prompts_high: the same on prompts like
    these; setting_low, setting_high: on these prompts, without a choice; these_error and
    these_degrees: the standard error on these prompts, and its degrees of freedom; slower and
    more_helps: `beaten` and `more_helps` of `Decision`.
    """
    settings, statistics = [members[key] for key in _keys(own)], config.statistics
    means = moderated([*map(mean_speedup, settings)])
    others = stacked([*map(mean_on_other_prompts, settings, means)])
    lacking = np.array([one["lacking_error"].iloc[0] for one in settings])
    these = stacked(means)
    these = these._replace(error=np.hypot(these.error, lacking))
    behind = stacked(moderated([mean_speedup(_over(one, settings[0]), "over") for one in settings]))
    looks = config.measurement.looks
    found = decide(
        these,
        others,
        behind,
        confidence=statistics.confidence,
        session=session_of(statistics, settings),
        # The best is chosen among those with an interval.
        choice=max(int((~np.isnan(these.error)).sum()), 1) + dropped,
        look=min(int(own["repeats"].max()), looks) if len(own) else 1,
        looks=looks,
    )
    told = {"these_error": these.error, "these_degrees": these.degrees}
    told |= {"slower": found.beaten, "more_helps": found.more_helps}
    return pd.DataFrame(found.ends._asdict() | told, own.index)


def _over(own: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Return a setting's pairs beside those of the best one, with `over`, the ratio of the two.

    Where they share none, one without an interval stands for that.
    """
    beside = best[["prompt", "repeat", "speedup"]]
    both = own.merge(beside, on=["prompt", "repeat"], suffixes=("", "_best"))
    both = both.assign(over=both["speedup"] / both["speedup_best"])
    return both if len(both) else own.head(1).assign(over=1.0)


def _best(usable: pd.DataFrame) -> pd.DataFrame:
    """Return the row to advise of settings, the fastest first; none of none.

    It is the first that gains on prompts like these, else on these, else the fastest.
    """
    gains = [usable[usable[low] > 1] for low in ("other_prompts_low", "simultaneous_low")]
    return next((some for some in gains if len(some)), usable).head(1)


def _answer(
    target: str, ranked: pd.DataFrame, controls: Controls, untried: int, config: Config
) -> dict[str, Any]:
    """Return a target's row; `untried`: how many settings there were no minutes for."""
    # Settings on the prompts that answer come first.
    own = ranked[ranked["prompt_set"] == ranked["prompt_set"].iloc[0]] if len(ranked) else ranked
    counts = own["status"].value_counts()
    excluded, lost, idle = (
        int(counts.get(one, 0)) for one in (Status.EXCLUDED, Status.LOST, Status.IDLE)
    )
    usable = own[own["status"].isin([Status.BEST, Status.COMPARED])]
    answer, reason = _known(own, usable, controls) or judge(usable)
    need, more = what_helps(answer, usable, config)
    if usable.empty and untried and answer == Answer.LITTLE:
        answer, need = Answer.UNDECIDED, Need.MINUTES
        reason = "what was tried hardly drafts, and there were no minutes for the rest"
    if answer in (Answer.OFF, Answer.LITTLE):
        # Flags fall on fast runs alone: what they leave must not decide that nothing gains.
        telling = own["status"].isin([Status.BEST, Status.COMPARED, Status.EXCLUDED])
        flagged = own[telling & (own["flagged"] > 0)]
        loses = flagged["unfiltered_high"] < 1
        if not (loses | (flagged["unfiltered_little"] < LITTLE) & (answer == Answer.LITTLE)).all():
            answer = Answer.UNDECIDED
            reason = (
                "no setting gains without the pairs that the audit flags, and one may with them"
            )
    best = {str(key): value.iloc[0] for key, value in usable.items()} if len(usable) else {}
    return best | {
        "target": target,
        "answer": answer.value,
        "reason": reason,
        "controls": controls.value,
        "settings": len(own) - idle - excluded - lost,
        "idle": idle,
        "excluded_settings": excluded,
        "lost_settings": lost,
        "not_compared": excluded + lost + untried or None,
        "sent_settings": len(own) + untried,
        "needs": need,
        "more_repeats": more,
    }


def _command(answer: Mapping[str, Any], config: Config, *, gpu: bool) -> str | None:
    """Return the line that starts llama-server as advised, or measures more; None if none."""
    if answer["answer"] == Answer.UNDECIDED:
        measures = config.campaign.source == "measured" and answer["more_repeats"]
        return measuring_line(config, answer["repeats"], measures) if measures else None
    if answer["answer"] in (Answer.UNKNOWN, Answer.LOOPING):  # loops are no advice for other text
        return None
    on = answer["answer"] in (Answer.ON, Answer.HERE)
    return launch_line(config, answer["target"], answer if on else None, gpu=gpu)


def _keys(settings: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(settings[SETTING].itertuples(index=False, name=None))


def _known(
    own: pd.DataFrame, usable: pd.DataFrame, controls: Controls
) -> tuple[Answer, str] | None:
    """Return an answer that needs no interval, and its reason; None if there is none."""
    missing = own["status"].isin([Status.EXCLUDED, Status.LOST])
    why = None
    if own.empty:
        why = "no run with speculation was measured against baselines of its own"
    elif controls == Controls.FAILED:
        why = "its controls fail, so its other measurements do not count"
    elif (own["status"] == Status.LOST).all():
        why = f"{DISTURBED} far more than usual during every pair of runs"
    elif missing.mean() > MOST_MISSING:
        why = (
            "most settings are flagged or were lost to other load, so what is left answers nothing"
        )
    elif (own["status"] == Status.IDLE).any() and usable.empty:
        return Answer.LITTLE, "no setting drafts enough to gain on these prompts"
    elif usable["simultaneous_low"].isna().all():
        why = "every setting was measured once, so no interval is known"
    return (Answer.UNKNOWN, why) if why else None


_REASONS = {
    Answer.ON: "the interval of the best setting is above 1 for other prompts too",
    Answer.HERE: "no gain is shown for other prompts of this kind",
    Answer.LOOPING: "the text loops, so nothing is known of text that does not",
    Answer.OFF: "the interval of every setting by itself is below 1 on these prompts",
    Answer.LITTLE: "no setting gains a tenth, even in another session",
    Answer.UNDECIDED: "for another session, no interval is above 1, nor all below",
}


def judge(usable: pd.DataFrame) -> tuple[Answer, str]:
    """Return the answer of settings on the same prompts, the fastest first, and the reason.

    They have the columns of `deciding`, and looping (null: unknown).
    """
    ends = Ends(*usable[[*Ends._fields]].to_numpy(float).T)
    answer = Answer(str(find_answer(ends)))
    loops = _best(usable)["looping"].iloc[0] > LIMITS.looping_share
    if loops and answer in (Answer.ON, Answer.HERE):
        answer = Answer.LOOPING
    if answer == Answer.UNDECIDED and (usable["setting_low"] > 1).any():
        return answer, "no interval is above 1 after allowing for the choice among settings"
    return answer, _REASONS[answer]
