"""Rows of an analysis that several tables, figures and sentences show."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from specmoe.analysis.advice import Answer, Status
from specmoe.analysis.labels import Control, by_model, in_series, protocols, without_controls
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.analysis.summaries import fastest
from specmoe.audit.checks import ALL
from specmoe.config.block import MEASURED_BY, PASSAGE_PREFIX

GAINS = (Answer.ON, Answer.HERE, Answer.LOOPING)
"""Answers by which a target gains."""


def usual_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the settings but for controls."""
    return in_series(without_controls(analysis.settings))


def text_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the settings of suites that do not compare lengths of prompts, but for controls."""
    settings = without_controls(analysis.settings)
    return in_series(settings[settings["factor"] != "prompt_tokens"])


def method_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the settings of targets that a suite measured with several methods, but for controls.

    Added: best, see `fastest`; among these settings.
    """
    settings = without_controls(analysis.settings)
    methods = settings.groupby(["suite", "target", *MEASURED_BY])["method"].transform("nunique")
    settings = in_series(settings[methods > 1])
    return settings.assign(best=fastest(settings))


def settings_by_draft(analysis: Analysis) -> pd.DataFrame:
    """Return the text settings without `method_settings`, which have a figure of their own."""
    settings, keys = text_settings(analysis), ["suite", "target"]
    shown = pd.MultiIndex.from_frame(method_settings(analysis)[keys])
    return in_series(settings[~pd.MultiIndex.from_frame(settings[keys]).isin(shown)])


def length_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the levels of prompt length with their `prompt`, but for controls."""
    levels = without_controls(analysis.levels)
    levels = levels[levels["factor"] == "prompt_tokens"]
    return levels.assign(prompt=PASSAGE_PREFIX + levels["level"].astype(object))


def control_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the controls, those that should be accepted first.

    Added: `due` (the acceptance rate that they must reach, or not exceed), and controls_passed and
    controls_failed (runs; null where the audit has not counted them).
    """
    settings = in_series(analysis.settings[analysis.settings["control"] != Control.NONE])
    keys = [*MEASURED_BY, "target", "draft", "gamma"]
    audit = analysis.audit.reindex(columns=[*keys, "controls_passed", "controls_failed"])
    campaign = analysis.campaign.iloc[0]
    due = {kind: campaign[f"{kind}_acceptance"] for kind in Control if kind != Control.NONE}
    settings = settings.assign(due=settings["control"].map(due)).merge(audit, how="left", on=keys)
    return settings.sort_values(["control", "target_rank", "suite", "gamma"], ignore_index=True)


def settings_by_protocol(analysis: Analysis) -> pd.DataFrame:
    """Return the settings that were measured in several ways: by two protocols, or two engines.

    Added: `measured_by`, words for protocol and engine, and `flagged`, the runs that the audit
    flags; in the campaign's order.
    """
    settings = protocols(in_series(analysis.settings))
    key = ["target", "draft", "gamma"]
    settings = settings[settings.groupby(key)["measured_by"].transform("nunique").gt(1)]
    keys = [*MEASURED_BY, *key]
    settings = settings.merge(analysis.audit[[*keys, "flagged"]], how="left", on=keys)
    suites = {suite: rank for rank, suite in enumerate(analysis.suites["suite"])}
    return settings.assign(suite_rank=settings["suite"].map(suites)).sort_values(
        ["target_rank", "draft_rank", "suite_rank", "gamma"], ignore_index=True
    )


def prompt_sets(analysis: Analysis) -> list[tuple[int, list[str]]]:
    """Return each set of prompts of `text_settings` by its labels, after its number of settings."""
    labels = {
        suite: (*dict.fromkeys(label for labels in own for label in labels),)
        for suite, own in analysis.settings.groupby("suite")["text_labels"]
    }
    sets = Counter(text_settings(analysis)["suite"].map(labels))
    return [(count, [*named]) for named, count in sets.items()]


def timed_passes(analysis: Analysis) -> pd.DataFrame:
    """Return v of the passes that were timed by themselves, one row per target and width."""
    passes = analysis.verification
    passes = passes[passes["timed"].astype(bool)]
    return passes.drop_duplicates(["target", "n_tokens"], ignore_index=True)


def advised_targets(analysis: Analysis) -> pd.DataFrame:
    """Return the advice for targets that were measured with a draft, in order."""
    advice = analysis.advice
    counts = advice[["settings", "excluded_settings", "idle", "lost_settings"]]
    return advice[counts.sum(axis="columns") > 0].sort_values("target_rank", ignore_index=True)


def settings_on_other_prompts(analysis: Analysis) -> dict[str, list[Record]]:
    """Return, by target, the fastest setting on each set of prompts that does not answer.

    Settings are compared only on the same prompts, so an answer is about one set (`advice`).
    Added to the columns of `advice_settings`: settings, how many are compared.
    """
    settings = analysis.advice_settings
    answering = analysis.advice.set_index("target")["prompt_set"].to_dict()
    found: dict[str, list[Record]] = {}
    for (target, prompts), own in settings.groupby(["target", "prompt_set"], sort=False):
        compared = own[~own["status"].isin([Status.EXCLUDED, Status.IDLE])]
        if prompts != answering.get(target) and len(compared):
            best = records(compared[compared["status"] == Status.BEST])[0]
            found.setdefault(str(target), []).append(best | {"settings": len(compared)})
    return found


def best_settings(analysis: Analysis) -> list[Record]:
    """Return the fastest setting of each target on each set of prompts, its answer's first.

    `decides` is "on" or "off", or "" where the setting decides no answer.
    """
    found, others = [], settings_on_other_prompts(analysis)
    decides = dict.fromkeys(GAINS, "on") | {Answer.OFF: "off"}
    for row in records(advised_targets(analysis)):
        if row["settings"]:
            found.append(row | {"decides": decides.get(row["answer"], "")})
        found += [other | {"decides": ""} for other in others.get(row["target"], [])]
    return found


def reported_pairs(analysis: Analysis) -> pd.DataFrame:
    """Return one row of `upcycled_pairs` for each MoE: over all γ, of the most telling setting.

    That is a draft model at its own acceptance; else the highest acceptance that was forced; else
    another drafting method.
    """
    pairs = analysis.upcycled_pairs
    forced = pairs["forced_acceptance"].astype(float)
    order: dict[str, Any] = {
        "place": (~by_model(pairs)).astype(int) * 2 + forced.notna(),
        "share": -forced.fillna(1),
        "widest": -pairs["gammas"].map(lambda gammas: len(str(gammas).split())),
    }
    first = pairs.assign(**order).sort_values([*order], kind="stable")
    return first.drop_duplicates("target").sort_index(ignore_index=True)


def drawn_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the settings that the figure of campaigns side by side shows, with a column `panel`.

    A panel is a target and its prompts. Shown are those that several campaigns measured, or all
    where there are none; nothing where a single campaign measured any.
    """
    settings = analysis.compared_settings
    if settings["campaign"].nunique() < 2:
        return settings.iloc[:0].assign(panel=None)
    settings = settings.assign(
        panel=settings.groupby(["target_label", "prompts", "suite"], sort=False).ngroup()
    )
    shared = settings[settings.groupby("panel")["campaign"].transform("nunique") > 1]
    return settings if shared.empty else shared


def whole_audit(analysis: Analysis) -> dict[str, Any]:
    """Return the audit's counts of all runs, see `checks.summarise_audit`; empty without audit."""
    audit = analysis.audit
    return next(iter(records(audit[audit["target"] == ALL])), {})


def count_check(counts: Mapping[str, Any], check: str) -> dict[str, Any]:
    """Return what a row of `checks.summarise_audit` counts of a check.

    Keys: failed, runs (to which it applies), not_judged (more of these; null if none), worst (the
    largest ratio to a bound).
    """
    failed, passed = (counts.get(f"{check}_{word}", 0) for word in ("failed", "passed"))
    known = 0 if pd.isna(failed) or pd.isna(passed) else int(failed + passed)
    unjudged = counts.get(f"{check}_not_judged", 0)
    return {
        "failed": int(failed) if known else 0,
        "runs": known,
        "not_judged": int(unjudged) if pd.notna(unjudged) and unjudged else None,
        "worst": counts.get(f"{check}_worst"),
    }
