"""Contenders: which settings are measured further, after a stage of a campaign.

Before the first repeat the speedups of draft models and n-grams are predicted (`gamma_curves`), of
which the best n-grams stay; after each all are compared, by the rules of `decision`. A target whose
answer is decided is measured no further, nor is a setting that is clearly beaten, or that hardly
drafts. With few minutes the most promising settings are measured, on as many prompts as the minutes
allow. Others wait until it is known what they go with: `p_min` with the best γ, n-grams with the
best model or head (`join`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress, groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from specmoe.analysis import summaries
from specmoe.analysis.advice import Status, advice_from
from specmoe.analysis.build import setting_tables
from specmoe.analysis.decision import DECIDED, Fate
from specmoe.analysis.gamma_curves import scored_pair
from specmoe.analysis.noise import prior
from specmoe.analysis.registry import Record, records
from specmoe.analysis.summaries import IDLE_SHARE, is_no_control, key_of, with_controls
from specmoe.audit.checks import audit_runs
from specmoe.audit.draft_rounds import played_by_run, scores_by_run
from specmoe.audit.evidence import Evidence
from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Arm, Block
from specmoe.config.matrix import MOST_NGRAMS, TEXTS, comparisons, scores_ngrams, setting_of
from specmoe.config.methods import WITH, Method, draft_label, engine_type, is_ngram
from specmoe.config.schema import Config
from specmoe.files import read_record
from specmoe.models.info import ModelInfo, load_info
from specmoe.runs.collect import rows_of_block
from specmoe.runs.other_tables import read_passes, read_scores, undisturbed_passes
from specmoe.runs.schema import frame_of

Rows = dict[str, dict[str, Any]]
"""What is known of each setting after a stage, by its id: who it is, predictions, verdict."""

# A setting is tried on so many prompts before a further setting is: fewer say little of others.
WANTED_PROMPTS = 8
WARM_START_S = 1.0  # of a server, with its warm-up
_SPEEDUP = ("speedup", "speedup_low", "speedup_high")


def choose(campaign: LoadedCampaign, repeat: int, blocks: Sequence[str], before: Rows) -> Rows:
    """Return what is known before a repeat: `blocks` are measured, `before` was known before."""
    config = campaign.config
    infos = {name: load_info(campaign.places.info(name)) for name in config.measured_networks}
    rows = {
        (name := setting_of(block, arm)): _row(block, arm, config) | before.get(name, {})
        for suite in config.selected_suites
        for block in comparisons(config, suite, gpu=campaign.gpu)
        for arm in select_arms(block, config.audit.unrelated_drafts, infos)
    }
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    if repeat == 0:
        predict(campaign, rows, infos)
    else:
        compare(campaign, blocks, rows, infos)
    for name, row in rows.items():
        if row["paired"] or 0 < repeat < config.measurement.least:
            row["verdict"] = verdicts[name]
    return rows


def select_arms(
    block: Block, unrelated: Collection[str], infos: Mapping[str, ModelInfo]
) -> list[Arm]:
    """Return the arms of a block that may beat each other: no controls, no forced acceptance."""
    arms = [arm for arm in block.arms if arm.speculates and arm.forced_acceptance is None]
    facts = [(block.target, engine_type(*arm.methods), arm.draft_model) for arm in arms]
    frame = pd.DataFrame(facts, columns=["target", "method", "draft_model"])
    return [*compress(arms, is_no_control(with_controls(frame, unrelated, infos)))]


def _row(block: Block, arm: Arm, config: Config) -> dict[str, Any]:
    assert arm.method
    file = config.label(arm.draft_model) if arm.draft_model else None
    by_model = arm.draft_model if arm.by_model and not arm.p_min else None
    looks_up = is_ngram(arm.method) and scores_ngrams(config, config.suites[block.suite])
    # The same model or head without p_min or partner.
    drafter = arm.draft.removesuffix(f"{WITH}{arm.partner}")
    plain = replace(arm, draft=drafter, p_min=None, partner=None, n_match=None, partner_gamma=None)
    label = draft_label(arm.methods, file, vars(arm) | {"draft": arm.setting})
    return {
        "label": f"{label}, γ = {arm.gamma}",
        **{name: getattr(block, name) for name in ("comparison", "suite", "target", "level")},
        "draft": arm.setting,
        "gamma": arm.gamma,
        "prompts": len(block.prompts),
        # Nothing is predicted of heads, of draft models that stop early, or of what has options of
        # its own; see `scores_ngrams`.
        "scored_by": (arm.name if looks_up else by_model) if block.is_timed(arm) else None,
        "waits_for": setting_of(block, plain) if arm.waits else None,
        **{name: getattr(arm, name) for name in ("method", "partner", "n_match")},
        "verdict": Fate.WAITING if arm.waits else Fate.CONTENDER,
        "paired": block.target in config.paired_targets,
    }


def predict(campaign: LoadedCampaign, rows: Rows, infos: Mapping[str, ModelInfo]) -> None:
    """Add predicted speedups to rows of draft models and n-grams, and the verdicts that follow."""
    asked, statistics = Asked(campaign), campaign.config.statistics
    passes = undisturbed_passes(read_passes(asked, repeats=[0]))
    played = played_by_run(map(read_record, filter(Path.exists, campaign.scores("ngrams"))))
    scores = scores_by_run(read_scores(campaign.scores())) | played
    texts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, block in campaign.blocks.items():
        if TEXTS in name and asked.records.link(f"blocks/{name}").exists():
            texts[block.comparison] += rows_of_block(asked, name)
    for comparison, group in groupby(rows.values(), itemgetter("comparison")):
        settings, alone = [*group], frame_of(texts[comparison])
        for row in settings:
            if row["scored_by"] and len(alone):
                given = alone, row["scored_by"], scores, passes, statistics
                if pair := scored_pair(*given, replays=infos[row["target"]].replays):
                    row |= pair.predict_speedup(row["gamma"])
                    row["drafted_share"] = pair.drafted_share(row["gamma"])
        drop_predicted([row for row in settings if row["verdict"] != Fate.WAITING])


def drop_predicted(settings: Sequence[dict[str, Any]]) -> None:
    """Give their verdict to settings whose predicted interval is below 1, or the best one's.

    If all are predicted to lose, the best one stays: only measuring shows that it is slower. Of
    n-grams few stay: their rounds are known, and cost alike. Equal predictions are of equal rounds,
    and one that hardly drafts stays only where there is nothing else.
    """
    known = [row for row in settings if "predicted" in row]
    ngrams = [row for row in known if is_ngram(Method(row["method"]))]
    ngrams.sort(key=itemgetter("predicted"))
    drafting = [row for row in ngrams if row["drafted_share"] > IDLE_SHARE]
    tried = drafting or (ngrams[-1:] if len(ngrams) == len(settings) else [])
    best = [*{f"{row['predicted']:.6f}": row for row in tried}.values()][-MOST_NGRAMS:]
    gone = [row for row in ngrams if row not in best]
    for row in gone:
        row["verdict"] = Fate.SURPASSED if row in drafting else Fate.IDLE
    known = [row for row in known if row not in gone]
    edge = max([1.0, *(row["predicted_low"] for row in known)])
    beaten = [row for row in known if row["predicted_high"] < edge]
    if len(beaten) == len(settings) - len(gone) and beaten:
        beaten.remove(max(beaten, key=itemgetter("predicted")))
    for row in beaten:
        row["verdict"] = Fate.PREDICTED


def compare(
    campaign: LoadedCampaign, blocks: Sequence[str], rows: Rows, infos: Mapping[str, ModelInfo]
) -> None:
    """Give their verdicts to settings after a repeat."""
    config, asked = campaign.config, Asked(campaign)
    runs = frame_of(row for name in blocks for row in rows_of_block(asked, name))
    # What rests on sizes, machines, probabilities and judged texts is checked at the end.
    audit = audit_runs(Evidence(runs, {}, None, config.audit)).query("check != 'unjudged_text'")
    pairs = summaries.make_pairs(runs, config.audit.unrelated_drafts, infos, config.workloads)
    settings = setting_tables(pairs, config.statistics)["settings"]
    runs = summaries.usual(summaries.with_conditions(runs))
    known = advice_from(runs, pairs, settings, audit, config, infos, rows.values())
    for answer in records(known["advice"]):
        own = [row for row in rows.values() if row["target"] == answer["target"]]
        drop(own, answer, known["advice_settings"].query("target == @answer['target']"))


def drop(rows: Sequence[dict[str, Any]], answer: Record, settings: pd.DataFrame) -> None:
    """Give their verdicts to the settings of a target, by its rows of `advice_from`'s tables."""
    by_key = {key_of(row): row for row in rows if row["level"] is None}
    answering = settings["prompt_set"] == settings["prompt_set"].head(1).sum()
    usable = answering & settings["status"].isin([Status.BEST, Status.COMPARED])
    for setting, asked, counts in zip(records(settings), answering, usable, strict=True):
        row = by_key[key_of(setting)]
        row |= {name: setting[name] for name in _SPEEDUP if pd.notna(setting[name])}
        if asked:
            row["answer"] = answer["answer"]
        if setting["status"] == Status.IDLE:
            row["verdict"] = Fate.IDLE
        elif counts and setting["status"] != Status.BEST and setting["slower"]:
            row["verdict"] = Fate.BEATEN
    if not usable.any() or doubt(rows):
        return
    decided = answer["answer"] in DECIDED or answer["open_kinds"] == 0
    enough = decided or not (answer["open_kinds"] or settings.loc[usable, "more_helps"].any())
    for row in rows:
        if {Fate.UNTRIED: decided, Fate.CONTENDER: enough}.get(row["verdict"]):
            row["verdict"] = Fate.DECIDED


def doubt(rows: Sequence[dict[str, Any]]) -> bool:
    """Believe predictions less, the farther others of their target are from what was measured.

    Their intervals are as much wider as the error, shrunk to the prior, is larger than that; those
    that may gain by these are contenders again. Return whether there are any, so that what is
    measured so far decides nothing.
    """
    both = [row for row in rows if {"predicted", "speedup"} <= row.keys()]
    believed = [row for row in rows if row["verdict"] == Fate.PREDICTED]
    if not both or not believed:
        return False
    usual = prior("predictions", "once")
    square = fmean(math.log(row["predicted"] / row["speedup"]) ** 2 for row in both)
    wider = max(usual.shrunk([square]).value / usual.value, 1.0)

    def end(row: Mapping[str, Any], name: str) -> float:
        return float(row["predicted"] * (row[name] / row["predicted"]) ** wider)

    edge = max([1.0, *(end(row, "predicted_low") for row in (*both, *believed))])
    again = [row for row in believed if end(row, "predicted_high") >= edge]
    for row in again:
        row["verdict"] = Fate.CONTENDER
    return bool(again)


def join(rows: Rows, *, final: bool) -> None:
    """Make contenders of settings that waited, once what they go with was measured.

    A larger `p_min` is tried at the best γ of each model or head, and at the next one unless that
    is beaten. In the end, when nothing else of its comparison is measured further or the `final`
    repeat follows, the best model or head drafts beside the best n-gram method; of the lengths that
    a pair has, at the nearest ones.
    """
    gone_with = {row["waits_for"] for row in rows.values()}
    measured = [name for name in rows if name in gone_with and "speedup" in rows[name]]
    ranked = sorted(measured, key=lambda name: rows[name]["speedup"], reverse=True)
    places = Counter[tuple[str, str]]()
    for name in ranked:
        row = rows[name]
        places[drafter := (row["comparison"], row["draft"])] += 1
        if places[drafter] == 1 or (places[drafter] == 2 and row["verdict"] != Fate.BEATEN):
            for other in rows.values():
                if other["waits_for"] == name and not other["partner"]:
                    _admit(other, row)
    for comparison, group in groupby(rows.values(), itemgetter("comparison")):
        best = next((name for name in ranked if rows[name]["comparison"] == comparison), None)
        settings = [*group]
        going = any(row["verdict"] == Fate.CONTENDER for row in settings)
        if best and (final or not going) and (pair := _best_pair(settings, best)):
            _admit(pair, rows[best])


def _best_pair(settings: Sequence[dict[str, Any]], best: str) -> dict[str, Any] | None:
    """Return the pair of a comparison to try, which waits for the `best` model or head.

    It is None if one was tried, or no n-gram drafts.
    """
    pairs = [row for row in settings if row["waits_for"] and row["partner"]]
    drafting = [row for row in settings if "speedup" in row and row["verdict"] != Fate.IDLE]
    n_grams = [row for row in drafting if is_ngram(Method(row["method"]))]
    if not n_grams or any(row["verdict"] != Fate.WAITING for row in pairs):
        return None
    n_gram = max(n_grams, key=itemgetter("speedup"))
    fitting = [row for row in pairs if row["waits_for"] == best]
    fitting = [row for row in fitting if row["partner"] == n_gram["method"]]
    looked_up = n_gram["n_match"] or 0
    return min(fitting, key=lambda row: abs((row["n_match"] or 0) - looked_up), default=None)


def _admit(waiting: dict[str, Any], plain: Mapping[str, Any]) -> None:
    """Make a contender of a setting that waited, of which as much is hoped as of the plain one."""
    if waiting["verdict"] == Fate.WAITING:
        waiting |= {"verdict": Fate.CONTENDER, "hoped": plain["speedup"]}


def afford(rows: Rows, left_s: float, paces: Mapping[str, float]) -> None:
    """Leave out settings for which there are no minutes, the least promising ones first.

    `left_s` is what measuring may still take, `paces` what a run of each target takes. One stays of
    each target, and every paired one. A setting takes a run on WANTED_PROMPTS at most, and a
    baseline beside each.
    """

    def expected(row: Mapping[str, Any]) -> float:
        known = (row[name] for name in ("speedup", "predicted", "hoped") if name in row)
        return float(next(known, 1.0))

    tried = set[str]()
    going = [row for row in rows.values() if row["verdict"] in (Fate.CONTENDER, Fate.UNTRIED)]
    for row in sorted(going, key=expected, reverse=True):
        run_s = paces.get(row["target"], 0.0)
        both_s = run_s + run_s / max(expected(row), 0.1) + WARM_START_S
        left_s -= min(row["prompts"], WANTED_PROMPTS) * both_s
        affords = left_s >= 0 or row["target"] not in tried or row["paired"]
        row["verdict"] = Fate.CONTENDER if affords else Fate.UNTRIED
        tried.add(row["target"])
