"""Contenders: which settings are measured further, after a stage of a campaign.

Before the first repeat the speedups of draft models are predicted (`gamma_curves`), after each all
are compared, by the rules of `decision`. A target whose answer is decided is measured no further,
nor is a setting that is clearly beaten, or that hardly drafts. With few minutes the most promising
settings are measured, on as many prompts as the minutes allow.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Answer, Status, advise
from specmoe.analysis.build import setting_tables
from specmoe.analysis.decision import Decision, decide
from specmoe.analysis.gamma_curves import scored_pair
from specmoe.analysis.intervals import (
    Mean,
    mean_on_other_prompts,
    mean_speedup,
    moderated,
    student_quantile,
)
from specmoe.analysis.labels import is_no_control, with_controls
from specmoe.analysis.noise import session_of
from specmoe.analysis.summaries import SETTING, make_pairs, usual, with_conditions
from specmoe.audit.checks import audit_runs
from specmoe.audit.draft_rounds import DraftScores, ScoresKey, scores_by_run
from specmoe.audit.evidence import Evidence
from specmoe.config.block import Arm, Block
from specmoe.config.matrix import TEXTS, comparisons, setting_of
from specmoe.config.methods import Method, draft_label, engine_type
from specmoe.config.schema import Config, Statistics
from specmoe.files import read_record
from specmoe.models.info import ModelInfo, load_info
from specmoe.plan.asked import Asked
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.collect import rows_of_block
from specmoe.runs.other_tables import read_passes, rows_of_draft, undisturbed_passes
from specmoe.runs.schema import frame_of, undisturbed


class Verdict(StrEnum):
    """What becomes of a setting after a stage."""

    CONTENDER = "contender"  # it is measured further
    PREDICTED = "beaten by prediction"
    BEATEN = "beaten"
    IDLE = "hardly drafts"
    DECIDED = "decided"  # its target's answer is
    UNTRIED = "not tried for lack of minutes"


def select_arms(
    block: Block, unrelated: Collection[str], infos: Mapping[str, ModelInfo]
) -> list[Arm]:
    """Return the arms of a block that may beat each other: no controls, no forced acceptance."""
    arms = [one for one in block.arms if one.speculates and one.forced_acceptance is None]
    facts = [(block.target, engine_type(one.method), one.draft_model) for one in arms]
    frame = pd.DataFrame(facts, columns=["target", "method", "draft_model"])
    own = is_no_control(with_controls(frame, unrelated, infos))
    return [arm for arm, counts in zip(arms, own, strict=True) if counts]


def predict(
    block: Block,
    arms: Sequence[Arm],
    baselines: pd.DataFrame,
    scores: Mapping[ScoresKey, list[DraftScores]],
    pass_times: pd.DataFrame,
    statistics: Statistics,
    margin: float,
    *,
    replays: bool,
) -> list[dict[str, Any]]:
    """Return a row for each setting of a block before it is measured, with its verdict.

    `baselines` are runs of the target by itself, `replays` says whether it replays rounds.
    Nothing is predicted of other methods than draft models, nor of those that may stop early.
    """
    rows = []
    for arm in arms:
        pair = None
        if arm.method == Method.DRAFT and not arm.p_min:
            draft = str(arm.draft_model)
            pair = scored_pair(baselines, draft, scores, pass_times, statistics, replays=replays)
        rows.append(_row(block, arm) | (pair.predict_speedup(arm.gamma) if pair else {}))
    known = [row for row in rows if "predicted" in row]
    if known:
        means, low, high = (
            np.log([row[f"predicted{end}"] for row in known]) for end in ("", "_low", "_high")
        )
        beaten = beaten_by_prediction(means, low, high, margin, others=len(known) < len(rows))
        for row, one in zip(known, beaten, strict=True):
            row["verdict"] = Verdict.PREDICTED if one else Verdict.CONTENDER
    return rows


