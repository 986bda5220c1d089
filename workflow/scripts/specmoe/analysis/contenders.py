"""Contenders: which settings are measured further, after a stage of a campaign.

Before the first repeat the speedups of draft models are predicted (`gamma_curves`), after each all
are compared, by the rules of `decision`. A target whose answer is decided is measured no further,
nor is a setting that is clearly beaten, or that hardly drafts. With few minutes the most promising
settings are measured, on as many prompts as the minutes allow.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import compress, groupby
from operator import itemgetter
from statistics import fmean
from typing import Any

import pandas as pd

from specmoe.analysis import summaries
from specmoe.analysis.advice import Status, advice_from
from specmoe.analysis.build import setting_tables
from specmoe.analysis.decision import Answer, Fate
from specmoe.analysis.gamma_curves import scored_pair
from specmoe.analysis.noise import prior
from specmoe.analysis.registry import records
from specmoe.analysis.summaries import is_no_control, key_of, with_controls
from specmoe.audit.checks import audit_runs
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.audit.evidence import Evidence
from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Arm, Block
from specmoe.config.matrix import TEXTS, comparisons, setting_of
from specmoe.config.methods import Method, draft_label, engine_type
from specmoe.config.schema import Config
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
_DECIDED = (Answer.ON, Answer.OFF, Answer.LITTLE, Answer.LOOPING)
_target = itemgetter("target")


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
    facts = [(block.target, engine_type(arm.method), arm.draft_model) for arm in arms]
    frame = pd.DataFrame(facts, columns=["target", "method", "draft_model"])
    return [*compress(arms, is_no_control(with_controls(frame, unrelated, infos)))]


def _row(block: Block, arm: Arm, config: Config) -> dict[str, Any]:
    assert arm.method
    file = config.label(arm.draft_model) if arm.draft_model else None
    label = draft_label(arm.method, file, vars(arm) | {"draft": arm.setting})
    predicted = arm.method == Method.DRAFT and not arm.p_min and block.is_timed(arm)
    return {
        "label": f"{label}, γ = {arm.gamma}",
        **{name: getattr(block, name) for name in ("comparison", "suite", "target", "level")},
        "draft": arm.setting,
        "gamma": arm.gamma,
        "prompts": len(block.prompts),
        # Nothing is predicted of other methods than draft models, nor of those that stop early or
        # have options of their own.
        "scored_by": arm.draft_model if predicted else None,
        "verdict": Fate.CONTENDER,
        "paired": block.target in config.paired_targets,
    }


def predict(campaign: LoadedCampaign, rows: Rows, infos: Mapping[str, ModelInfo]) -> None:
    """Add predicted speedups to the rows of draft models, and the verdicts that follow."""
    asked, statistics = Asked(campaign), campaign.config.statistics
    passes = undisturbed_passes(read_passes(asked, repeats=[0]))
    scores = scores_by_run(read_scores(campaign.scores))
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
        drop_predicted(settings)


def drop_predicted(settings: Sequence[dict[str, Any]]) -> None:
    """Give their verdict to settings whose predicted interval is below 1, or the best one's.

    If all are predicted to lose, the best one stays: only measuring shows that it is slower.
    """
    known = [row for row in settings if "predicted" in row]
    edge = max([1.0, *(row["predicted_low"] for row in known)])
    beaten = [row for row in known if row["predicted_high"] < edge]
    if len(beaten) == len(settings) and beaten:
        beaten.remove(max(beaten, key=itemgetter("predicted")))
    for row in beaten:
        row["verdict"] = Fate.PREDICTED


def compare(
    campaign: LoadedCampaign, blocks: Sequence[str], rows: Rows, infos: Mapping[str, ModelInfo]
) -> None:
    """Give their verdicts to settings after a repeat."""
    config, asked = campaign.config, Asked(campaign)
    runs = frame_of(row for name in blocks for row in rows_of_block(asked, name))
    # What rests on sizes, machines and probabilities is checked at the end.
    audit = audit_runs(Evidence(runs, {}, None, config.audit))
    pairs = summaries.make_pairs(runs, config.audit.unrelated_drafts, infos, config.workloads)
    settings = setting_tables(pairs, config.statistics)["settings"]
    runs = summaries.usual(summaries.with_conditions(runs))
    known = advice_from(runs, pairs, settings, audit, config, infos, rows.values())
    for target, group in groupby(sorted(rows.values(), key=_target), _target):
        drop([*group], *(frame[frame["target"] == target] for frame in known.values()))


def drop(rows: Sequence[dict[str, Any]], advice: pd.DataFrame, settings: pd.DataFrame) -> None:
    """Give their verdicts to the settings of a target; frames are its rows of `advice_from`'s."""
    by_key = {key_of(row): row for row in rows if row["level"] is None}
    usable = settings["status"].isin([Status.BEST, Status.COMPARED])
    usable &= settings["prompt_set"] == settings["prompt_set"].head(1).sum()  # those that answer
    for setting, answers in zip(records(settings), usable, strict=True):
        row = by_key[key_of(setting)]
        row |= {name: setting[name] for name in _SPEEDUP if pd.notna(setting[name])}
        row["answer"] = str(advice["answer"].iloc[0])
        if setting["status"] == Status.IDLE:
            row["verdict"] = Fate.IDLE
        elif answers and setting["status"] != Status.BEST and setting["slower"]:
            row["verdict"] = Fate.BEATEN
    if not usable.any() or doubt(rows):
        return
    decided = advice["answer"].isin(_DECIDED).any()
    enough = decided or not settings.loc[usable, "more_helps"].any()
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


def afford(rows: Rows, left_s: float, paces: Mapping[str, float]) -> None:
    """Leave out settings for which there are no minutes, the least promising ones first.

    `left_s` is what measuring may still take, `paces` what a run of each target takes. One stays of
    each target, and every paired one. A setting takes a run on each prompt, and a baseline beside
    it.
    """

    def expected(row: Mapping[str, Any]) -> float:
        return float(row.get("speedup", row.get("predicted", 1.0)))

    tried = set[str]()
    going = [row for row in rows.values() if row["verdict"] in (Fate.CONTENDER, Fate.UNTRIED)]
    for row in sorted(going, key=expected, reverse=True):
        run_s = paces.get(row["target"], 0.0)
        both_s = run_s + run_s / max(expected(row), 0.1) + WARM_START_S
        left_s -= min(row["prompts"], WANTED_PROMPTS) * both_s
        affords = left_s >= 0 or row["target"] not in tried or row["paired"]
        row["verdict"] = Fate.CONTENDER if affords else Fate.UNTRIED
        tried.add(row["target"])
