"""Contenders: which settings are measured further, after a stage of a campaign.

Before the first repeat the speedups of draft models are predicted (`gamma_curves`), after each all
are compared, by the rules of `decision`. A target whose answer is decided is measured no further,
nor is a setting that is clearly beaten, or that hardly drafts. With few minutes the most promising
settings are measured, on as many prompts as the minutes allow.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from specmoe.analysis.advice import Status
from specmoe.analysis.build import advice_tables
from specmoe.analysis.decision import Answer, Verdict, decide
from specmoe.analysis.gamma_curves import scored_pair
from specmoe.analysis.intervals import mean_on_other_prompts, mean_speedup, moderated, stacked
from specmoe.analysis.labels import is_no_control, with_controls
from specmoe.analysis.noise import session_of
from specmoe.analysis.summaries import SETTING
from specmoe.audit.checks import audit_runs
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.audit.evidence import Evidence
from specmoe.config.block import Arm, Block
from specmoe.config.matrix import TEXTS, comparisons, setting_of
from specmoe.config.methods import Method, draft_label, engine_type
from specmoe.config.schema import Config
from specmoe.models.info import ModelInfo, load_info
from specmoe.plan.asked import Asked
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.collect import rows_of_block
from specmoe.runs.other_tables import read_passes, read_scores, undisturbed_passes
from specmoe.runs.schema import frame_of

Rows = dict[str, dict[str, Any]]
"""What is known of each setting after a stage, by its id: who it is, predictions, verdict."""

# A setting is tried on so many prompts before a further setting is: fewer say little of others.
WANTED_PROMPTS = 8
START_S = 1.0  # of a server, with its warm-up
_DECIDED = (Answer.ON, Answer.OFF, Answer.LITTLE, Answer.LOOPING)
_target = itemgetter("target")


class Limits(NamedTuple):
    """What there is time for."""

    left_s: float = math.inf  # that measuring may still take
    run_s: Mapping[str, float] = MappingProxyType({})  # of a run, by target


class Stage(NamedTuple):
    """What is known before a repeat, and what is measured in it."""

    rows: Rows
    ended: str  # why nothing is measured further; empty if something is

    @property
    def measured(self) -> dict[str, bool]:
        """Whether each setting is measured further."""
        return {name: row["verdict"] == Verdict.CONTENDER for name, row in self.rows.items()}

    @property
    def targets(self) -> set[str]:
        """The targets of which some setting is measured further."""
        return {row["target"] for name, row in self.rows.items() if self.measured[name]}


def choose(
    campaign: LoadedCampaign, repeat: int, blocks: Sequence[str], before: Rows, limits: Limits
) -> Stage:
    """Return what is measured in a repeat: `blocks` are measured, `before` was known before."""
    config = campaign.config
    infos = {name: load_info(campaign.info(name)) for name in config.measured_networks}
    rows = {
        setting_of(one, arm): _row(one, arm, config)
        for suite in config.selected_suites
        for one in comparisons(config, suite, gpu=campaign.gpu)
        for arm in select_arms(one, config.audit.unrelated_drafts, infos)
    }
    rows = {name: row | before.get(name, {}) for name, row in rows.items()}
    if repeat == 0:
        predict(campaign, rows, infos)
    else:
        compare(campaign, repeat, blocks, rows, infos)
    afford(campaign, rows, limits)
    stage = Stage(rows, "")
    ended = "" if stage.targets or not rows else "no setting needs more repeats"
    return stage._replace(ended=ended)


def select_arms(
    block: Block, unrelated: Collection[str], infos: Mapping[str, ModelInfo]
) -> list[Arm]:
    """Return the arms of a block that may beat each other: no controls, no forced acceptance."""
    arms = [one for one in block.arms if one.speculates and one.forced_acceptance is None]
    facts = [(block.target, engine_type(one.method), one.draft_model) for one in arms]
    frame = pd.DataFrame(facts, columns=["target", "method", "draft_model"])
    own = is_no_control(with_controls(frame, unrelated, infos))
    return [arm for arm, counts in zip(arms, own, strict=True) if counts]


def _row(block: Block, arm: Arm, config: Config) -> dict[str, Any]:
    assert arm.method
    file = config.label(arm.draft_model) if arm.draft_model else None
    return {
        "label": f"{draft_label(arm.method, file, vars(arm))}, γ = {arm.gamma}",
        "comparison": block.comparison,
        "suite": block.suite,
        "target": block.target,
        "level": block.level,
        "draft": arm.setting,
        "gamma": arm.gamma,
        # Nothing is predicted of other methods than draft models, nor of those that stop early.
        "scored_by": arm.draft_model if arm.method == Method.DRAFT and not arm.p_min else None,
        "verdict": Verdict.CONTENDER,
    }


def predict(campaign: LoadedCampaign, rows: Rows, infos: Mapping[str, ModelInfo]) -> None:
    """Add predicted speedups to the rows of draft models, and the verdicts that follow."""
    asked, statistics = Asked(campaign), campaign.config.statistics
    passes = undisturbed_passes(read_passes(asked, repeats=[0]))
    scores = scores_by_run(read_scores(campaign.scores))
    texts: dict[str, list[dict[str, Any]]] = {}
    for name, block in campaign.blocks.items():
        if TEXTS in name and asked.records.link(f"blocks/{name}").exists():
            texts.setdefault(block.comparison, []).extend(rows_of_block(asked, name))
    for comparison, own in groupby(rows.values(), itemgetter("comparison")):
        settings, alone = [*own], frame_of(texts.get(comparison, []))
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
        row["verdict"] = Verdict.PREDICTED


def compare(
    campaign: LoadedCampaign,
    repeat: int,
    blocks: Iterable[str],
    rows: Rows,
    infos: Mapping[str, ModelInfo],
) -> None:
    """Give their verdicts to settings after a repeat."""
    config, asked = campaign.config, Asked(campaign)
    runs = frame_of(row for name in blocks for row in rows_of_block(asked, name))
    # What rests on sizes, machines and probabilities is checked at the end.
    audit = audit_runs(Evidence(runs, {}, None, config.audit))
    tables = advice_tables(runs, config, infos, audit, rows.values())
    if repeat >= config.measurement.least:
        for target, own in groupby(sorted(rows.values(), key=_target), _target):
            drop(target, [*own], tables, config, repeat)


def drop(
    target: str,
    rows: Sequence[dict[str, Any]],
    tables: Mapping[str, Any],
    config: Config,
    repeat: int,
) -> None:
    """Give their verdicts to the settings of a target."""
    advice, settings = (
        frame[frame["target"] == target] for frame in (tables["advice"], tables["advice_settings"])
    )
    by_key = {tuple(row[name] for name in SETTING): row for row in rows if row["level"] is None}
    keys = [*settings[SETTING].itertuples(index=False, name=None)]
    known = settings[["speedup", "speedup_low", "speedup_high"]].astype(float).to_dict("records")
    for key, status, numbers in zip(keys, settings["status"], known, strict=True):
        by_key[key] |= {name: one for name, one in numbers.items() if pd.notna(one)}
        by_key[key]["answer"] = str(advice["answer"].iloc[0])
        if status == Status.IDLE:
            by_key[key]["verdict"] = Verdict.IDLE
    usable = settings["status"].isin([Status.BEST, Status.COMPARED])
    usable &= settings["prompt_set"] == settings["prompt_set"].head(1).sum()  # those that answer
    found = [*compress(keys, usable)]
    if not found:
        return
    members = [tables["compared"][key] for key in found]  # those of the best one first
    these = moderated([*map(mean_speedup, members)])
    others = [*map(mean_on_other_prompts, members, these)]
    behind = moderated([mean_speedup(_over(own, members[0]), "over") for own in members])
    decided = decide(
        *map(stacked, (these, others, behind)),
        confidence=config.statistics.confidence,
        session=session_of(config.statistics, members),
        choice=len(by_key),
        look=repeat,
        looks=config.measurement.looks,
    )
    for key in compress(found[1:], decided.beaten[1:]):
        by_key[key]["verdict"] = Verdict.BEATEN
    doubt(rows)
    if advice["answer"].isin(_DECIDED).any() or not decided.more_helps:
        for row in rows:
            if row["verdict"] in (Verdict.CONTENDER, Verdict.UNTRIED):
                row["verdict"] = Verdict.DECIDED


def doubt(rows: Sequence[dict[str, Any]]) -> None:
    """Believe no prediction of settings one of which was wrong: they are contenders again."""
    known = [row for row in rows if {"predicted_low", "speedup_low"} <= row.keys()]
    if any(
        row["speedup_high"] < row["predicted_low"] or row["speedup_low"] > row["predicted_high"]
        for row in known
    ):
        for row in rows:
            if row["verdict"] == Verdict.PREDICTED:
                row["verdict"] = Verdict.CONTENDER


def _over(own: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Return a setting's pairs beside those of the best one, with `over`, the ratio of the two.

    Where they share none, one without an interval stands for that.
    """
    beside = best[["prompt", "repeat", "speedup"]]
    both = own.merge(beside, on=["prompt", "repeat"], suffixes=("", "_best"))
    both = both.assign(over=both["speedup"] / both["speedup_best"])
    return both if len(both) else own.head(1).assign(over=1.0)


def afford(campaign: LoadedCampaign, rows: Rows, limits: Limits) -> None:
    """Leave out settings for which there are no minutes, the least promising ones first.

    One stays of each target. A setting takes a run on each prompt, and a baseline beside it.
    """

    def expected(row: Mapping[str, Any]) -> float:
        return float(row.get("speedup", row.get("predicted", 1.0)))

    prompts = Counter[str]()
    for block in campaign.blocks.values():
        if block.repeat == 0 and TEXTS not in block.block:
            prompts[block.comparison] += len(block.prompts)
    left_s, tried = limits.left_s, set[str]()
    going = [row for row in rows.values() if row["verdict"] in (Verdict.CONTENDER, Verdict.UNTRIED)]
    for row in sorted(going, key=expected, reverse=True):
        run_s = limits.run_s.get(row["target"], 0.0)
        wanted = min(prompts[row["comparison"]], WANTED_PROMPTS)
        left_s -= wanted * (run_s + run_s / max(expected(row), 0.1) + START_S)
        affords = left_s >= 0 or row["target"] not in tried
        row["verdict"] = Verdict.CONTENDER if affords else Verdict.UNTRIED
        tried.add(row["target"])
