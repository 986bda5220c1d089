"""Advice for each target of a campaign: whether to switch speculative decoding on, and how.

A setting is a suite, target, draft and γ, measured with the draft model's own acceptance, at the
campaign's temperature, against baselines of its own. `decision` says which answer the settings
give. Of a gain, the fastest setting is named whose interval for prompts like these lies above 1,
else that for these prompts. It is *on for looping text* if more of that setting's text loops than
`LIMITS.looping_share`, because loops are easy to draft and no other text was measured.

Settings are compared only on the same prompts: those of their suite and target. The set of prompts
that answers is the one with most whole texts, as people send texts, then the one with most prompts;
of equal ones that with pairs that count. A setting that hardly drafts, or was beaten and measured
no further (see `contenders`), is neither the fastest nor an obstacle to *off*.

What cannot be compared, because its pairs were lost to other load or excluded, is counted in the
answer. The answer is *not known* where that is more than what is left: this is then a minority that
load and flags chose, and flags choose by speed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis import decision, intervals
from specmoe.analysis.decision import GAINS, LITTLE, Answer, Ends, Fate, decide, find_answer
from specmoe.analysis.exclusions import at_all_prompts, is_excluded
from specmoe.analysis.follow_up import Need, launch_line, measuring_line, what_helps
from specmoe.analysis.intervals import mean_on_other_prompts, mean_speedup, moderated, stacked
from specmoe.analysis.noise import session_of
from specmoe.analysis.registry import TABLES, Record, records
from specmoe.analysis.summaries import (
    SETTING,
    describe_texts,
    is_idle,
    is_no_control,
    key_of,
    summarise,
    usual,
)
from specmoe.audit.checks import flagged_runs
from specmoe.audit.evidence import CheckVerdict
from specmoe.audit.limits import LIMITS
from specmoe.config.block import ARM_COLUMNS, PASSAGE_PREFIX, Protocol
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


Members = Mapping[Any, pd.DataFrame]
"""Runs of each setting, by `SETTING`."""

# Checks of the audit by which no run is excluded. Those that do not bear on one run's time or text:
# `determinism` is about other repeats, `controls` counts for the target as a whole, and a network
# that is broken is as slow as it was timed. And those whose bound is no more than the fastest that
# was seen of the machine, which a run may exceed.
_HARMLESS = {
    *("determinism", "controls", "rejected_drafts"),
    *("expected_experts", "expected_time", "measured_bandwidth"),
}

# What starts a setting, beside its parameters.
_OF_ARM = ["method", "draft_model", "engine_options", "baseline_options"]

# Where a larger share of settings was lost, or not tried, what is left says nothing of most.
MOST_MISSING = 0.5


def advice_from(
    runs: pd.DataFrame,
    pairs: pd.DataFrame,
    measured: pd.DataFrame,
    audit: pd.DataFrame,
    config: Config,
    infos: Mapping[str, ModelInfo],
    stages: Iterable[Mapping[str, Any]] = (),
) -> dict[str, pd.DataFrame]:
    """Return the tables of advice, `advice_settings` with the columns of `deciding`.

    `runs` are those of `summaries.usual`, those that do not count too; `pairs` is `make_pairs`'s
    frame, `measured` that of `summarise`, `audit` that of `audit_runs`; `infos` are the models' by
    id; `stages` are the rows of the last decision of a campaign that was measured in stages.
    """
    # No one uses a control. The study's protocol has two programs for the two arms.
    compared = (pairs["protocol"] == Protocol.PAIRED) & pairs["paired"].ne(other=False)
    marked = _marked(usual(pairs[compared & is_no_control(pairs)]), audit)
    members = {key: pairs[pairs["counts"]] for key, pairs in marked.groupby(SETTING)}
    settings, left = _apply_exclusions(marked, members, measured, config)
    # Null without a file, and for a cache of n-grams.
    sizes = {model: info.size_bytes for model, info in infos.items()}
    settings["draft_bytes"] = settings["draft_model"].map(sizes)
    verdicts = {key_of(row): row["verdict"] for row in stages if row.get("level") is None}
    said = np.array([verdicts.pop(key, None) for key in _keys(settings)], object)
    compared = settings["status"] == Status.COMPARED
    settings.loc[compared & (said == Fate.BEATEN), "status"] = Status.BEATEN
    settings.loc[compared & is_idle(settings), "status"] = Status.IDLE
    # Left are those without a pair: the minutes may end before a contender has its turn.
    untried = Counter(
        target
        for (_, target, *_), verdict in verdicts.items()
        if verdict in (Fate.UNTRIED, Fate.CONTENDER)
    )
    failing = audit["check"].eq("rejected_drafts") & audit["verdict"].eq(CheckVerdict.FAIL)
    whys = audit[failing].drop_duplicates(["target", "why"]).groupby("target")["why"].agg("; ".join)
    gpu = bool((runs["backend"] != Backend.CPU).any())
    sets = settings.groupby(["target", "prompt_set"], sort=False)
    ranked = [_ranked(peers, left, members, config) for _, peers in sets]
    settings = pd.concat(ranked, ignore_index=True) if ranked else settings
    answers, kinds = [], list[Record]()
    for target in (name for name in config.models if name in {*runs["target"]}):
        of_target = settings[settings["target"] == target]
        # Settings on the prompts that answer come first.
        peers = of_target[of_target["prompt_set"] == of_target["prompt_set"].head(1).sum()]
        answer = _answer(target, peers, left, _controls(audit, target), untried[target], config)
        answer["rejected_drafts"] = whys.get(target)
        answer["baseline_command"] = None
        if answer["settings"] or answer["idle"]:
            alone = {"engine_options": peers["baseline_options"].iloc[0]}
            answer["baseline_command"] = launch_line(config, target, alone, gpu=gpu)
        kinds += _by_kind(answer, peers, members, config, gpu=gpu)
        answers.append(answer | {"command": _command(answer, config, gpu=gpu)})
    table = TABLES["advice"]
    advice = pd.DataFrame(answers, columns=[*table.columns])
    # They are null where a target has no setting.
    counts = {name: "Int64" for name, kind in table.columns.items() if kind == "count"}
    of_kinds = pd.DataFrame(kinds, columns=[*TABLES["advice_kinds"].columns])
    return {"advice": advice.astype(counts), "advice_settings": settings, "advice_kinds": of_kinds}


def _marked(pairs: pd.DataFrame, audit: pd.DataFrame) -> pd.DataFrame:
    """Return pairs, whether their runs are flagged, and what their suite sent to their target.

    A setting may lack some prompts of that prompt_set, as the machine was disturbed, a run failed
    or the minutes ended.
    """
    failed = flagged_runs(audit[~audit["check"].isin(_HARMLESS)])
    runs, prompts = pairs[["run", "baseline"]], pairs.groupby(["suite", "target"])["prompt"]
    return pairs.assign(
        flagged=runs.isin({*failed["flagged"].dropna()}).any(axis="columns"),
        impossible=runs.isin({*failed["impossible"].dropna()}).any(axis="columns"),
        prompt_set=prompts.transform(lambda ids: ", ".join(sorted({*ids}))),
    )


def _apply_exclusions(
    sent: pd.DataFrame, members: Members, measured: pd.DataFrame, config: Config
) -> tuple[pd.DataFrame, dict[Any, pd.DataFrame]]:
    """Return settings with their numbers, and the runs of each that are compared.

    `sent` are `_marked` pairs, of which `members` count. Settings of a target that were sent the
    same prompts are compared: they follow one another, those first that answer. One that is
    excluded keeps all its numbers.
    """
    of_all = {key_of(row): row for row in records(measured)}
    compared, rows = dict[Any, pd.DataFrame](), []

    def claim(of: tuple[Any, pd.DataFrame]) -> tuple[int, ...]:
        (target, prompt_set), peers = of
        prompts = prompt_set.split(", ")
        texts = [prompt for prompt in prompts if not prompt.startswith(PASSAGE_PREFIX)]
        return [*config.models].index(target), -len(texts), -len(prompts), not peers["counts"].any()

    for (_, prompt_set), peers in sorted(sent.groupby(["target", "prompt_set"]), key=claim):
        asked = str(prompt_set).split(", ")
        settings = dict(iter(peers.groupby(SETTING)))
        kept = {key: members[key] for key in settings if not is_excluded(members[key], asked)}
        left = at_all_prompts({key: its[~its["flagged"]] for key, its in kept.items()})
        compared |= left
        runs = [*left.values()]
        prompts = set().union(*(its["prompt"] for its in runs))
        numbers = summarise(pd.concat(runs), SETTING, config.statistics) if runs else peers[:0]
        of_left = {key_of(row): row for row in records(numbers)}
        for key, pairs in settings.items():
            counted, its = members[key], left.get(key, members[key])
            lacking = prompts - {*its["prompt"]} if key in left else ()
            without = Status.EXCLUDED if len(counted) else Status.LOST
            rows.append(
                pairs.iloc[0][[*SETTING, *_OF_ARM, *ARM_COLUMNS]].to_dict()
                | of_all.get(key, {})
                | of_left.get(key, {})
                | {
                    "prompt_set": prompt_set,
                    "pairs": len(pairs),
                    "excluded": len(pairs) - len(counted) or None,
                    "flagged": int(counted["flagged"].sum()),
                    "impossible": int(counted["impossible"].sum()),
                    "lacking_prompts": ", ".join(sorted(lacking)),
                    "prompts": its["prompt"].nunique() or None,
                    "repeats": its["repeat"].nunique() or None,
                    "status": Status.COMPARED if key in left else without,
                }
            )
    return pd.DataFrame(rows, columns=[*TABLES["advice_settings"].columns]), compared


def _controls(audit: pd.DataFrame, target: str) -> Controls:
    verdicts = {*audit.loc[(audit["check"] == "controls") & (audit["target"] == target), "verdict"]}
    if CheckVerdict.FAIL in verdicts:
        return Controls.FAILED
    return Controls.PASSED if CheckVerdict.PASS in verdicts else Controls.NONE


def _ranked(peers: pd.DataFrame, left: Members, members: Members, config: Config) -> pd.DataFrame:
    """Return settings on the same prompts with what decides, the best first.

    `left` are the runs of each that are compared, `members` those with the flagged ones.
    """
    peers = peers.sort_values(["speedup", *SETTING], ascending=[False, *[True] * len(SETTING)])
    # The best is chosen among all that were measured once.
    dropped = int((peers["status"] == Status.BEATEN).sum())
    compared = peers["status"] == Status.COMPARED
    peers = peers.assign(**deciding(peers[compared], left, dropped, config))
    flagged = peers[(compared | peers["status"].eq(Status.EXCLUDED)) & (peers["flagged"] > 0)]
    with_flagged = at_all_prompts({key: members[key] for key in _keys(flagged)})
    every = deciding(flagged, with_flagged, dropped, config)
    peers["unfiltered_high"] = every["setting_high"]
    peers["unfiltered_little"] = every["simultaneous_high"]
    peers.loc[_best(peers[compared]).index, "status"] = Status.BEST
    return peers.sort_values("status", key=lambda names: names.map([*Status].index), kind="stable")


def deciding(ranked: pd.DataFrame, members: Members, dropped: int, config: Config) -> pd.DataFrame:
    """Return what decides an answer, a row for each setting, the fastest first.

    `members` has the compared runs of each, `dropped` is how many more the best was chosen among,
    see `contenders`. Intervals allow for another session, and for the repeats after which a
    campaign may end; NaN without repeats. Beside them: these_error and these_degrees, the standard
    error on these prompts, and its degrees of freedom; slower and more_helps: `beaten` and
    `more_helps` of `Decision`.
    """
    settings, statistics = [members[key] for key in _keys(ranked)], config.statistics
    means = moderated([*map(mean_speedup, settings)])
    others = stacked([*map(mean_on_other_prompts, settings, means)])
    lacking = np.array([pairs["lacking_error"].iloc[0] for pairs in settings])
    these = stacked(means)
    these = these._replace(error=np.hypot(these.error, lacking))
    behind = moderated([mean_speedup(_over(pairs, settings[0]), "over") for pairs in settings])
    looks = config.measurement.looks
    decision = decide(
        these,
        others,
        stacked(behind),
        confidence=statistics.confidence,
        session=session_of(statistics, settings),
        # The best is chosen among those with an interval.
        choice=max(int((~np.isnan(these.error)).sum()), 1) + dropped,
        look=min(int(ranked["repeats"].max()), looks) if len(ranked) else 1,
        looks=looks,
    )
    told = {"these_error": these.error, "these_degrees": these.degrees}
    told |= {"slower": decision.beaten, "more_helps": decision.more_helps}
    return pd.DataFrame(decision.ends._asdict() | told, ranked.index)


def _over(pairs: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Return a setting's pairs beside those of the best one, with `over`, the ratio of the two.

    Where they share none, one without an interval stands for that.
    """
    beside = best[["prompt", "repeat", "speedup"]]
    both = pairs.merge(beside, on=["prompt", "repeat"], suffixes=("", "_best"))
    both = both.assign(over=both["speedup"] / both["speedup_best"])
    return both if len(both) else pairs.head(1).assign(over=1.0)


def _best(usable: pd.DataFrame) -> pd.DataFrame:
    """Return the row to advise of settings, the fastest first; none of none.

    It is the first that gains on prompts like these, else on these, else the fastest.
    """
    gains = [usable[usable[low] > 1] for low in ("other_prompts_low", "simultaneous_low")]
    return next((some for some in gains if len(some)), usable).head(1)


def _answer(
    target: str, peers: pd.DataFrame, own: Members, controls: Controls, untried: int, config: Config
) -> dict[str, Any]:
    """Return a target's row; `own`: compared runs; `untried`: settings that lacked minutes."""
    counts = Counter(peers["status"])
    gone = counts[Status.EXCLUDED] + counts[Status.LOST]
    usable = peers[peers["status"].isin([Status.BEST, Status.COMPARED])]
    answer, reason = _known(peers, usable, controls) or choose_answer(usable)
    session = session_of(config.statistics, [own[key] for key in _keys(usable)])
    need, more = what_helps(answer, usable, counts[Status.BEATEN], session, config)
    most_untried = untried > MOST_MISSING * (len(peers) + untried) or (untried and usable.empty)
    if most_untried and answer in (Answer.OFF, Answer.LITTLE):
        answer, need, reason = Answer.UNDECIDED, Need.MINUTES, "no minutes for most settings"
    if answer in (Answer.OFF, Answer.LITTLE):
        # Flags fall on fast runs alone: what they leave must not decide that nothing gains.
        telling = peers["status"].isin([Status.BEST, Status.COMPARED, Status.EXCLUDED])
        flagged = peers[telling & (peers["flagged"] > 0)]
        loses = flagged["unfiltered_high"] < 1
        if not (loses | (flagged["unfiltered_little"] < LITTLE) & (answer == Answer.LITTLE)).all():
            answer = Answer.UNDECIDED
            reason = "no setting gains without the pairs that the audit flags, one may with them"
    best = {str(key): value.iloc[0] for key, value in usable.items()} if len(usable) else {}
    return best | {
        "target": target,
        "answer": answer.value,
        "reason": reason,
        "controls": controls.value,
        "settings": len(usable) and len(peers) - gone - counts[Status.IDLE],
        "idle": counts[Status.IDLE],
        "excluded_settings": counts[Status.EXCLUDED],
        "lost_settings": counts[Status.LOST],
        "not_compared": gone + untried or None,
        "sent_settings": len(peers) + untried,
        "session": session.reach,
        "needs": need,
        "more_repeats": more,
    }


def _by_kind(
    answer: Record, peers: pd.DataFrame, members: Members, config: Config, *, gpu: bool
) -> list[Record]:
    """Return a row for each kind of prompts where a target is *on by kind*, and say so in its row.

    Kinds are the categories of the prompts of `peers`; settings count that were measured on all. Of
    a kind with flagged pairs no loss is said, as flags fall on fast runs.
    """
    usable = peers[peers["status"].isin([Status.BEST, Status.COMPARED])]
    untried = answer["needs"] == Need.MINUTES and answer["more_repeats"] is None
    if answer["answer"] == Answer.UNKNOWN or usable.empty or untried:
        return []
    every = pd.concat(members[key] for key in _keys(peers))
    doubted = every.loc[every["flagged"], "category"]
    settings = [members[key][~members[key]["flagged"]] for key in _keys(usable)]
    prompts = pd.concat(settings).groupby("category", dropna=False)["prompt"].nunique()
    tried = [at for at, its in enumerate(settings) if its["category"].nunique() == len(prompts)]
    if len(prompts) < 2 or not tried:
        return []
    samples = [settings[at].query("category == @kind") for kind in prompts.index for at in tried]
    loops = [describe_texts(sample)["looping"] for sample in samples[:: len(tried)]]
    # A kind may have three prompts, so what they differ by is shrunk to that of all kinds too.
    these = moderated([*map(mean_speedup, samples)])
    others = [*map(mean_on_other_prompts, samples, these)]
    others = moderated([one._replace(repeated=True, residuals=(), strata=()) for one in others])
    # Without repeats prompts stand for blocks.
    known = [one if one.repeated else other for one, other in zip(these, others, strict=True)]
    shape = 5, len(prompts), len(tried)
    found = decision.decide_by_kind(
        intervals.Mean(*np.reshape(stacked(known)[:5], shape)),
        intervals.Mean(*np.reshape(stacked(others)[:5], shape)),
        (prompts / prompts.sum()).to_numpy(),
        confidence=decision.confidence_of_look(
            config.statistics.confidence, config.measurement.looks
        ),
        session=session_of(config.statistics, settings),
        choice=len(tried) + int((peers["status"] == Status.BEATEN).sum()),
        on=answer["answer"] == Answer.ON,
        loops=np.array(loops) > LIMITS.looping_share,
        doubted=prompts.index.isin(doubted),
    )
    if not found.differ:
        return []
    rows = list[Record]()
    for at, kind in enumerate(prompts.index):
        said, place = Answer(str(found.answers[at])), found.chosen[at]
        setting = usable.iloc[tried[place]]
        ends = {name: end[at, place] for name, end in found.ends._asdict().items()}
        low, high = (ends[f"{decision.DECIDES[said]}_{end}"] for end in ("low", "high"))
        speedup = intervals.Estimate(math.exp(others[at * len(tried) + place].log), low, high)
        run = setting if said in GAINS else {"engine_options": setting["baseline_options"]}
        line = launch_line(config, answer["target"], run, gpu=gpu)
        row = {"kind": kind, "prompts": prompts[kind], "answer": said.value, "command": line}
        rows.append(setting.to_dict() | row | speedup.columns("speedup"))
    answer |= {"answer": Answer.BY_KIND.value, "reason": _REASONS[Answer.BY_KIND]}
    answer |= intervals.Estimate(*found.gain).columns("by_kind")
    answer |= {"needs": None, "more_repeats": None}
    answer["open_kinds"] = sum(row["answer"] not in decision.DECIDED for row in rows)
    return sorted(rows, key=lambda row: -row["speedup"])


def _command(answer: Mapping[str, Any], config: Config, *, gpu: bool) -> str | None:
    """Return the line that starts llama-server as advised, or measures more; None if none."""
    if answer["answer"] in GAINS:
        return launch_line(config, answer["target"], answer, gpu=gpu)
    if answer["answer"] in (Answer.OFF, Answer.LITTLE):
        return str(answer["baseline_command"])
    # Loops are no advice for other text, and each kind has a line of its own.
    more = config.campaign.source == "measured" and answer["more_repeats"]
    return measuring_line(config, answer["repeats"], more) if more else None


def _keys(settings: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(settings[SETTING].itertuples(index=False, name=None))


def _known(
    peers: pd.DataFrame, usable: pd.DataFrame, controls: Controls
) -> tuple[Answer, str] | None:
    """Return an answer that needs no interval, and its reason; None if there is none."""
    missing = peers["status"].isin([Status.EXCLUDED, Status.LOST])
    why = None
    if peers.empty:
        why = "no run with speculation was measured against baselines of its own"
    elif controls == Controls.FAILED:
        why = "its controls fail, so its other measurements do not count"
    elif (peers["status"] == Status.LOST).all():
        why = f"{DISTURBED} far more than usual during every pair of runs"
    elif missing.mean() > MOST_MISSING:
        why = "most settings are flagged or were lost to other load, so the rest answers nothing"
    elif (peers["status"] == Status.IDLE).any() and usable.empty:
        return Answer.LITTLE, "no setting drafts enough to gain on these prompts"
    elif usable.empty:
        why = "every setting that was not beaten is flagged or was lost to other load"
    elif usable["simultaneous_low"].isna().all():
        why = "every setting was measured once, so no interval is known"
    return (Answer.UNKNOWN, why) if why else None


_REASONS = {
    Answer.ON: "the interval of the best setting is above 1 for other prompts too",
    Answer.BY_KIND: "some kinds of prompts gain and others do not",
    Answer.HERE: "no gain is shown for other prompts of this kind",
    Answer.LOOPING: "the text loops, so nothing is known of text that does not",
    Answer.OFF: "the interval of every setting by itself is below 1 on these prompts",
    Answer.LITTLE: "no setting gains a tenth, even in another session",
    Answer.UNDECIDED: "another session may differ by more than any setting gains or loses",
}


def choose_answer(usable: pd.DataFrame) -> tuple[Answer, str]:
    """Return the answer of settings on the same prompts, the fastest first, and the reason.

    They have the columns of `deciding`, and looping (null: unknown).
    """
    ends = Ends(*usable[[*Ends._fields]].to_numpy(float).T)
    answer = Answer(str(find_answer(ends)))
    loops = _best(usable)["looping"].iloc[0] > LIMITS.looping_share
    if loops and answer in GAINS:
        answer = Answer.LOOPING
    if answer == Answer.UNDECIDED and (usable["setting_low"] > 1).any():
        return answer, "no interval is above 1 after allowing for the choice among settings"
    return answer, _REASONS[answer]
