"""Views: the rows that tables, figures and sentences show, of an analysis or of several campaigns.

`paper/tables.yaml` names them, figures and templates call them. What is known of each row alone,
labels and ranks too, is in the tables of the analysis (`tables.yaml`); a view chooses rows, and
says what these are to each other.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from specmoe.analysis.advice import Status
from specmoe.analysis.decision import Answer
from specmoe.analysis.number_text import percent, prompts_in_short
from specmoe.analysis.registry import TABLES, Analysis, Record, in_series, protocols, records
from specmoe.analysis.state import TOLERANCE
from specmoe.analysis.summaries import SETTING, Control, by_model, is_idle, is_no_control
from specmoe.analysis.upcycled_pairs import STEPS
from specmoe.audit.checks import ALL, CHECKS
from specmoe.audit.evidence import Level
from specmoe.audit.limits import LIMITS
from specmoe.config.block import MEASURED_BY, PASSAGE_PREFIX, Protocol
from specmoe.config.models import CELLS

GAINS = (Answer.ON, Answer.HERE, Answer.LOOPING)
"""Answers by which a target gains."""

FAMILY_WORDS = {"moe": "MoE", "dense": "dense"}
CONTROLS = {Control.SELF: "drafts for itself", Control.UNRELATED: "unrelated draft"}
# The acceptance rate that a control must reach, or not exceed.
_DUE = {
    Control.SELF: f"≥ {percent(LIMITS.self_acceptance, 0)}",
    Control.UNRELATED: f"≤ {percent(LIMITS.unrelated_acceptance, 0)}",
}
# Settings of a target over the same prompts can be compared.
_PROMPTED = ["target_label", "prompts"]


def usual_settings(
    analysis: Analysis, *, texts: bool = False, methods: bool | None = None
) -> pd.DataFrame:
    """Return the settings but for controls, in series (see `in_series`).

    `texts`: without suites that compare lengths of prompts; `methods`: of targets that a suite
    measured with several methods, or of the others. Added: best, whether a setting is the fastest
    of its target and protocol on its prompts; an idle one never is, as in advice; and sent, the
    prompts in short.
    """
    settings = analysis.settings[is_no_control(analysis.settings)]
    several = settings.groupby(["suite", "target", *MEASURED_BY])["method"].transform("nunique") > 1
    if methods is not None:
        settings = settings[several == methods]
    if texts:
        settings = settings[settings["factor"] != "prompt_tokens"]
    drafting = settings[~is_idle(settings)]
    peers = drafting.groupby([*MEASURED_BY, "target", "prompt_set"])["speedup"]
    best = (drafting["speedup"] == peers.transform("max")).reindex(settings.index, fill_value=False)
    sent = settings["prompt_set"].map(prompts_in_short, "ignore")
    return in_series(settings.assign(best=best, sent=sent))


text_settings = partial(usual_settings, texts=True)
method_settings = partial(usual_settings, methods=True)
# Those of several methods have a figure of their own.
settings_by_draft = partial(usual_settings, texts=True, methods=False)


def length_settings(analysis: Analysis) -> pd.DataFrame:
    """Return the levels of prompt length with their `prompt`, but for controls."""
    levels = analysis.levels
    levels = levels[is_no_control(levels) & (levels["factor"] == "prompt_tokens")]
    return levels.assign(prompt=PASSAGE_PREFIX + levels["level"].astype(object))


def fastest_at_levels(analysis: Analysis) -> list[Record]:
    """Return the fastest setting of each target at each level of what its suite varies.

    It has no lengths of prompts, which answers are about, and no forced acceptance.
    """
    levels = analysis.levels
    levels = levels[~levels["factor"].isin(["prompt_tokens", "forced_acceptance"])]
    levels = levels[is_no_control(levels) & ~is_idle(levels)]
    fastest = levels.sort_values("speedup", ascending=False, kind="stable")
    fastest = fastest.drop_duplicates(["suite", "target", "level"])
    return records(fastest.sort_values(["suite", "target_rank", "level_rank"]))


def controls(analysis: Analysis) -> pd.DataFrame:
    """Return the controls, those that should be accepted first, and baselines beside settings.

    Added: due, the acceptance that is due; controls_passed and controls_failed (runs; null where
    the audit has not counted them).
    """
    settings = in_series(analysis.settings[~is_no_control(analysis.settings)])
    keys = [*MEASURED_BY, "target", "draft", "gamma"]
    audit = analysis.audit.reindex(columns=[*keys, "controls_passed", "controls_failed"])
    settings = settings.merge(audit, how="left", on=keys).sort_values(
        ["control", "target_rank", "suite", "gamma"], ignore_index=True
    )
    control, settings = settings["control"], _in_several_ways(protocols(settings))
    settings = settings.assign(control=control.map(CONTROLS), due=control.map(_DUE))
    beside = analysis.baselines_beside.rename(columns=lambda name: name.replace("ratio", "speedup"))
    if beside.empty:
        return settings
    failed = beside["runs"].where(beside["failed"], 0)
    counts = {"controls_failed": failed, "controls_passed": beside["runs"] - failed}
    beside = beside.assign(control="baselines beside it", due="1×", **counts)
    beside = beside.assign(acceptance_rate=None, measured_by=None)
    return pd.concat([settings, beside], ignore_index=True) if len(settings) else beside


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
    suite_rank = settings["suite"].map([*analysis.suites["suite"]].index)
    return settings.assign(suite_rank=suite_rank).sort_values(
        ["target_rank", "draft_rank", "suite_rank", "gamma"], ignore_index=True
    )


def models(analysis: Analysis) -> pd.DataFrame:
    """Return the models with their roles and rates; a dense one has no experts.

    A model that was measured in several ways has several rates, and none here.
    """
    settings, levels, every = usual_settings(analysis), analysis.levels, analysis.settings
    members = {
        "target": {*settings["target"], *levels["target"]},
        "draft": {*settings["draft_model"], *levels["draft_model"]},
        "control": {*every.loc[every["control"] == Control.UNRELATED, "draft_model"]},
    }
    frame = analysis.models
    roles = [
        ", ".join(role for role, names in members.items() if model in names) or "baseline"
        for model in frame["model"]
    ]
    rates = analysis.baselines.drop_duplicates("target", keep=False).set_index("target")
    measured = ["tokens_per_second", "tokens_per_second_sd", "prompt_tokens_per_second"]
    return frame.assign(
        family=frame["family"].map(FAMILY_WORDS),
        experts=frame["experts"].where(frame["family"] == "moe"),
        role=roles,
    ).join(rates[measured], on="model")


def advised_targets(analysis: Analysis) -> pd.DataFrame:
    """Return the advice for targets that were measured with speculation, in order."""
    advice = analysis.advice
    return advice[advice["sent_settings"] > 0].sort_values("target_rank", ignore_index=True)


def settings_on_other_prompts(analysis: Analysis) -> dict[str, list[Record]]:
    """Return, by target, the fastest setting on each set of prompts that does not answer.

    Settings are compared only on the same prompts, so an answer is about one set (`advice`).
    Added to the columns of `advice_settings`: settings, how many are compared.
    """
    settings = analysis.advice_settings
    answering = analysis.advice.set_index("target")["prompt_set"].to_dict()
    settings = settings[settings["status"].isin([Status.BEST, Status.COMPARED, Status.BEATEN])]
    fastest: dict[str, list[Record]] = {}
    for (target, prompts), compared in settings.groupby(["target", "prompt_set"], sort=False):
        best = records(compared[compared["status"] == Status.BEST])
        if best and prompts != answering[target]:
            fastest.setdefault(str(target), []).append(best[0] | {"settings": len(compared)})
    return fastest


def best_settings(analysis: Analysis) -> list[Record]:
    """Return the fastest setting of each target on each set of prompts, equal ones together.

    `decides` is "on", "off" or "little", or "" where the setting decides no answer.
    """
    best, others = [], settings_on_other_prompts(analysis)
    decides = dict.fromkeys(GAINS, "on") | {Answer.OFF: "off", Answer.LITTLE: "little"}
    for row in records(advised_targets(analysis)):
        if row["settings"]:
            best.append(row | {"decides": decides.get(row["answer"], "")})
        best += [other | {"decides": ""} for other in others.get(row["target"], [])]
    places = [*dict.fromkeys(row["prompt_set"] for row in best)]
    best.sort(key=lambda row: (places.index(row["prompt_set"]), row["draft"], row["gamma"]))
    return best


def clear_states(analysis: Analysis) -> dict[str, list[Record]]:
    """Return the first and the last row of `state`, by target, where the line is clear."""
    quarters = analysis.state[analysis.state["clear"].astype(bool)].groupby("target")
    return {str(target): records(rows)[:: len(rows) - 1] for target, rows in quarters}


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


def experiment(analysis: Analysis) -> Record:
    """Return what being an MoE does to drafting, step by step from its dense counterpart, or {}.

    It is the row of `upcycled_pairs` of the MoE with most experts at its longest drafts, where a
    model between the two was measured, with the speedups of all runs (`_with_speedups`). Added:
    steps (the rows from the dense model to it), like (those of MoEs of other dense models at the
    same setting), draft_type, drafts_itself (whether the draft model is the dense one in that
    type), and same_tokens of the step at which fewest texts are equal.
    """
    pairs = analysis.upcycled_pairs
    pairs = pairs[pairs["gamma"].notna() & pairs["forced_acceptance"].isna() & by_model(pairs)]
    models = analysis.models.set_index("model")
    pairs = pairs.assign(experts=pairs["target"].map(models["experts"]))
    between = pairs[(pairs["before"] != pairs["dense"]) & pairs["step_ratio"].notna()]
    routed = between[between["step"].str.endswith(STEPS[-1])]
    if routed.empty:
        return {}
    chosen = records(routed.sort_values(["experts", "gamma"]))[-1]
    setting = [*MEASURED_BY, "draft", "gamma"]
    alike = pairs[(pairs[setting] == [chosen[key] for key in setting]).all(axis=1)]
    of_suite = {row["target"]: row for row in records(alike[alike["suite"] == chosen["suite"]])}
    steps = [chosen]
    while (before := steps[0]["before"]) in of_suite:
        steps.insert(0, of_suite[before])
    others = alike[(alike["dense"] != chosen["dense"]) & alike["step"].str.endswith(STEPS[-1])]
    draft = models.loc[chosen["draft_model"]]
    return _with_speedups(chosen, analysis) | {
        "steps": steps,
        "like": [_with_speedups(row, analysis) for row in records(others)],
        "draft_type": draft["type"],
        "drafts_itself": draft["network"] == models.at[chosen["dense"], "network"],
        "same_tokens": min(step["same_tokens"] for step in steps),
    }


def _with_speedups(pair: Record, analysis: Analysis) -> Record:
    """Return a row of `upcycled_pairs` with the speedups that `settings` has of its models.

    Those of the row are at the runs that both models have. Null where `settings` has none.
    """
    settings = analysis.settings
    setting = [*MEASURED_BY, "suite", "draft", "gamma"]
    of_pair = settings[(settings[setting] == [pair[key] for key in setting]).all(axis=1)]
    by_target = {row["target"]: row for row in records(of_pair)}
    speedups = {
        f"{role}{name}": by_target.get(pair[model], {}).get(name)
        for role, model in (("", "target"), ("dense_", "dense"))
        for name in map("".join, product(("speedup", "end_to_end"), ("", "_low", "_high")))
    }
    return pair | speedups


def experiment_steps(analysis: Analysis) -> pd.DataFrame:
    """Return the steps of `experiment`, then all of them together, for other dense models too.

    Added: pass_ratio, the time of a pass that verifies the longest drafts over that of the model
    before.
    """
    if not (shown := experiment(analysis)):
        return pd.DataFrame()
    passes = analysis.pass_times[analysis.pass_times["engine"] == shown["engine"]]
    ms = passes[passes["n_tokens"] == shown["gamma"] + 1].set_index("model")["ms"]
    rows = shown["steps"]
    for row in (shown, *shown["like"]):
        whole = {f"step_ratio{end}": row[f"ratio{end}"] for end in ("", "_low", "_high")}
        dense = {"before": row["dense"], "before_label": row["dense_label"], "step": "all"}
        rows = [*rows, row | dense | whole]
    steps = pd.DataFrame(rows)
    return steps.assign(pass_ratio=(steps["target"].map(ms) / steps["before"].map(ms)).array)


def beside_others(analysis: Analysis) -> Record:
    """Return what `baselines_beside` says in short, or {}.

    Keys: settings (how many), ratios (their ends), failed (how many), tolerance.
    """
    rows = analysis.baselines_beside
    if rows.empty:
        return {}
    counts = {"settings": len(rows), "failed": int(rows["failed"].sum()), "tolerance": TOLERANCE}
    return counts | {"ratios": ends(rows["ratio"])}


def whole_audit(analysis: Analysis) -> dict[str, Any]:
    """Return the audit's counts of all runs, see `checks.summarise_audit`; empty without audit."""
    audit = analysis.audit
    return next(iter(records(audit[audit["target"] == ALL])), {})


def count_check(counts: Mapping[str, Any], check: str) -> dict[str, Any]:
    """Return what a row of `checks.summarise_audit` counts of a check.

    Keys: failed, runs (to which it applies), not_judged (more of these; null if none), worst (the
    largest ratio to a bound).
    """
    known = [counts.get(f"{check}_{word}") for word in ("failed", "passed", "not_judged")]
    failed, passed, unjudged = (0 if pd.isna(count) else int(count) for count in known)
    return {
        "failed": failed,
        "runs": failed + passed,
        "not_judged": unjudged or None,
        "worst": counts.get(f"{check}_worst"),
    }


def findings(analysis: Analysis) -> pd.DataFrame:
    """Return what each check of the audit that applies to any run found in all of them."""
    whole = whole_audit(analysis)
    checks = sorted(CHECKS.items(), key=lambda item: item[1].level == Level.SUSPICIOUS)
    rows = [
        {"check": name.replace("_", " "), "level": check.level.value, "meaning": check.meaning}
        | count_check(whole, name)
        for name, check in checks
    ]
    return pd.DataFrame(row for row in rows if row["runs"] or row["not_judged"])


def claims(analysis: Analysis) -> pd.DataFrame:
    """Return the study's claims that the campaign can test, with its verdicts.

    A campaign that measured in several ways has each claim once for each; `measured_by` is null in
    others.
    """
    return _in_several_ways(analysis.claims[analysis.claims["comparisons"] > 0])


def _in_several_ways(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose `measured_by` is null where all have the same."""
    return rows if rows["measured_by"].nunique() > 1 else rows.assign(measured_by=None)


def comparison(analysis: Analysis) -> pd.DataFrame:
    """Return the study's headline numbers as printed, from its rows, and measured here.

    Left out are numbers that no campaign has, and how many runs there are. A bound's number has two
    digits, so that one just below it does not print as the bound.
    """
    frame = analysis.comparison
    known = frame[["recomputed", "measured"]].notna().any(axis=1)
    frame = frame[(frame["source"] != CELLS) & (frame["what"] != "runs total") & known]
    bound = frame["relation"] == "<"
    printed = frame["printed"].where(~bound, "< " + frame["printed"])
    return frame.assign(printed=printed, digits=frame["digits"].mask(bound, 2))


def compared_settings(analysis: Analysis) -> pd.DataFrame:
    """Return what the campaigns compared measured, settings of the same prompts together."""
    settings = analysis.compared_settings
    sent = ", suite " + settings["suite"] + ": " + settings["prompts"]
    prompted = settings["target_label"] + sent
    return settings.assign(prompted=prompted, series=prompted + settings["draft_label"])


def study_commands(analysis: Analysis) -> dict[str, Any]:
    """Return what the study's commands report: settings by draft length, and failures by engine.

    `failing` are the settings in which decodes fail, fastest first, with the ratio of their speedup
    to llama-server's for the same models and draft length (inflation; null without one), `inflated`
    the ends of these where a decode fails in every run, or (); `controls_fail`: if a control does.
    """
    settings, key = analysis.settings, ["target", "draft", "gamma"]
    of_server = settings[settings["protocol"] == Protocol.PAIRED].drop_duplicates(key, keep=False)
    settings = settings[settings["protocol"] == Protocol.STUDY]
    medians = settings.groupby("gamma")[["acceptance_rate", "speedup"]].median().reset_index()
    failing = settings[settings["decode_failures"] > 0].sort_values("speedup", ascending=False)
    beside = failing.merge(of_server[[*key, "speedup"]], "left", key, suffixes=("", "_of_server"))
    inflation = beside["speedup"] / beside["speedup_of_server"]
    always = inflation[beside["decode_failures"] >= 1].dropna()
    return {
        "inflated": ends(always) if len(always) else (),
        "lengths": records(medians),
        "failures": settings.groupby("engine")["decode_failures"].sum(),
        "failing": records(beside.assign(inflation=inflation)),
        "controls_fail": not is_no_control(failing).all(),
    }


def study_rounds(analysis: Analysis) -> dict[str, Any]:
    """Return what a round takes beside a single token, in ms, with the first draft.

    `slowest` are the settings of the target with the slowest token, `longest` the rounds of all
    targets at the longest draft, `step` their single tokens.
    """
    settings = text_settings(analysis).dropna(subset="round_ms")
    settings = settings[settings["draft_rank"] == settings["draft_rank"].min()]
    step = 1000 / settings["baseline_tokens_per_second"]
    longest = settings.loc[settings["gamma"] == settings["gamma"].max(), "round_ms"]
    slowest = settings[step == step.max()].sort_values("gamma")
    return {"slowest": records(slowest), "longest": ends(longest), "step": ends(step)}


def ends(values: "pd.Series[float]") -> tuple[float, float]:
    """Return the least and the largest of numbers."""
    return values.min(), values.max()


def compare_settings(analyses: Sequence[Analysis]) -> pd.DataFrame:
    """Return the table `compared_settings`, of several campaigns."""
    settings = pd.concat([_campaign_settings(analysis) for analysis in analyses], ignore_index=True)
    settings["suite"] = settings.groupby(_PROMPTED)["suite"].transform(
        lambda suites: ", ".join(dict.fromkeys(suites))
    )
    setting = settings.groupby([*_PROMPTED, "draft_label", "gamma"])
    settings["campaigns"] = setting["campaign"].transform("nunique")
    same = setting["files"].transform(lambda files: files.notna().all() and files.nunique() == 1)
    settings["same_files"] = same.astype(object).where(settings["campaigns"] > 1, None)
    # A target's settings over the same prompts stay together, in the order of the first campaign.
    settings = settings.assign(
        single=settings.groupby(_PROMPTED)["campaigns"].transform("max") == 1,
        target_rank=pd.factorize(settings["target_label"])[0],
        draft_rank=pd.factorize(settings["draft_label"])[0],
    )
    order = ["single", "target_rank", "suite", "prompts", "draft_rank", "gamma"]
    settings = settings.sort_values(order, kind="stable", ignore_index=True)
    return settings[[*TABLES["compared_settings"].columns]]


def compare_campaigns(analyses: Sequence[Analysis]) -> pd.DataFrame:
    """Return the table `compared_campaigns`, with a row for each heading of `compared_settings`."""
    rows = []
    for analysis in analyses:
        campaign, settings = records(analysis.campaign)[0], _campaign_settings(analysis)
        campaign |= {"heading": analysis.name, "settings": 0}
        campaign["engine_options"] = campaign["engine_options"] or None
        headings = settings.groupby(["heading", *MEASURED_BY], sort=False)["target"].size()
        counted = headings.rename("settings").reset_index()
        rows += [campaign | heading for heading in records(counted)] or [campaign]
    return pd.DataFrame(rows, columns=[*TABLES["compared_campaigns"].columns])


def _campaign_settings(analysis: Analysis) -> pd.DataFrame:
    """Return a campaign's settings with the columns that settings of several campaigns have."""
    settings = protocols(usual_settings(analysis))
    unit = str(analysis.campaign["length_unit"].iloc[0])
    digests = analysis.models.set_index("model")["sha256"]
    drafts = settings["draft_model"].map(digests).fillna("nothing")
    flagged = analysis.flagged.groupby(SETTING)["flagged"].sum().rename("flagged")
    way = ": " + settings["measured_by"]
    return settings.merge(flagged, how="left", left_on=SETTING, right_index=True).assign(
        campaign=analysis.name,
        heading=analysis.name + (way if way.nunique() > 1 else way.str[:0]),
        prompts=[_prompts(texts, unit) for texts in settings["texts"]],
        files=settings["target"].map(digests) + " " + drafts,
    )


def _prompts(texts: Sequence[str], unit: str) -> str:
    """Return words for prompts: texts by name, starts of the passage by length in a unit."""
    named = [text for text in texts if not text.startswith(PASSAGE_PREFIX)]
    lengths = sorted(int(text.removeprefix(PASSAGE_PREFIX)) for text in {*texts} - {*named})
    return ", ".join([*named, *([f"{', '.join(map(str, lengths))} {unit}"] if lengths else [])])
