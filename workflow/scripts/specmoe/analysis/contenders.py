"""Advice in stages: settings that are clearly beaten before all repeats are measured.

Before the first repeat the speedups of draft models are predicted (`gamma_curves`), after it all
are measured once. A setting is beaten if its interval lies below the best one's, or below 1, by
more than the margin that the configuration states (`measurement.drop_beaten`), and then it is
measured no further. If all settings of a block are beaten, its best one is not: only further
repeats can show that it is slower. `tests/benchmarks/interval_coverage.py` counts wrong answers
with and without that.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.gamma_curves import scored_pair
from specmoe.analysis.intervals import MANY, student_quantile
from specmoe.analysis.labels import is_no_control, with_controls
from specmoe.analysis.noise import prior, session_of
from specmoe.analysis.number_text import TOO_FEW_PROMPTS, measured
from specmoe.analysis.summaries import with_speedups
from specmoe.audit.draft_rounds import DraftScores, ScoresKey, scores_by_run
from specmoe.config.block import Arm, Block
from specmoe.config.matrix import setting_of, texts_of
from specmoe.config.methods import Method, draft_label, engine_type
from specmoe.config.schema import Statistics
from specmoe.errors import ConfigError
from specmoe.files import read_record, replace_text
from specmoe.models.info import ModelInfo, load_info
from specmoe.plan.asked import Asked
from specmoe.plan.campaign import ROOT, LoadedCampaign
from specmoe.runs.collect import rows_of_block
from specmoe.runs.other_tables import read_passes, rows_of_draft, undisturbed_passes
from specmoe.runs.schema import frame_of, undisturbed
from specmoe.text import fill_template, in_columns

BLOCK_SD = prior("blocks").value
"""What blocks of a setting are taken to differ by, as a standard deviation of the logarithm of
speedup, where there is only one."""


class Verdict(StrEnum):
    """Why a setting is measured no further."""

    PREDICTED = "beaten by prediction"
    FIRST = "beaten in the first repeat"
    CONTENDER = "contender"  # it is measured further


def first_ends(logs: np.ndarray, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of the mean logarithms of one block, for prompts like these.

    `logs` is an array (..., settings, prompts) of logarithms of speedup.
    """
    reach = np.hypot(_first_reach(logs, 1, statistics), session_of(statistics).reach)
    mean = logs.mean(axis=-1)
    return mean - reach, mean + reach


def _first_reach(logs: np.ndarray, blocks: int, statistics: Statistics) -> np.ndarray:
    """Return how far the means of one block's logarithms, or differences of two, may be off."""
    prompts = logs.shape[-1]
    if prompts < 2:
        return np.full(logs.shape[:-1], np.inf)
    prompt_error = logs.std(axis=-1, ddof=1) / math.sqrt(prompts)
    own = student_quantile(prompts - 1, statistics.confidence) * prompt_error
    block_error = student_quantile(MANY, statistics.confidence) * BLOCK_SD * math.sqrt(blocks)
    reach: np.ndarray = np.hypot(own, block_error)
    return reach


def beaten_in_first(logs: np.ndarray, statistics: Statistics, margin: float) -> np.ndarray:
    """Return which settings of one block are beaten, of an array (..., settings, prompts).

    Rivals are compared prompt by prompt. The best one stays.
    """
    means = logs.mean(axis=-1)
    best = np.expand_dims(means.argmax(axis=-1), (-1, -2))
    behind = logs - np.take_along_axis(logs, best, axis=-2)
    high = behind.mean(axis=-1) + _first_reach(behind, 2, statistics)
    edge = -math.log1p(margin)
    return _but_the_best((high < edge) | (first_ends(logs, statistics)[1] < edge), means)


def answer_so_far(logs: np.ndarray, statistics: Statistics) -> np.ndarray:
    """Return what one block says of its settings, of an array (..., settings, prompts).

    *on* and *off* are as in advice: a gain of the best allows for the choice among settings.
    """
    wrong = (1 - statistics.confidence) / logs.shape[-2]
    chosen = statistics.model_copy(update={"confidence": 1 - wrong})
    gains = first_ends(logs, chosen)[0].max(axis=-1) > 0
    loses = first_ends(logs, statistics)[1].max(axis=-1) < 0
    return np.select([gains, loses], ["on", "off"], "undecided")


def beaten_by_prediction(
    means: np.ndarray, low: np.ndarray, high: np.ndarray, margin: float, *, others: bool = False
) -> np.ndarray:
    """Return which settings are beaten, of logarithms (..., settings) with their ends.

    The best one stays, unless there are `others` of which nothing is predicted.
    """
    edge = np.maximum(low.max(axis=-1, keepdims=True), 0.0) - math.log1p(margin)
    beaten: np.ndarray = high < edge
    return beaten if others else _but_the_best(beaten, means)


def _but_the_best(beaten: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return what is beaten; where all are, without the best."""
    best = means == means.max(axis=-1, keepdims=True)
    kept: np.ndarray = beaten & ~(beaten.all(axis=-1, keepdims=True) & best)
    return kept


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


def compare_first(
    block: Block,
    arms: Sequence[Arm],
    runs: pd.DataFrame,
    predicted: Iterable[Mapping[str, Any]],
    statistics: Statistics,
    margin: float,
) -> list[dict[str, Any]]:
    """Return a row for each setting of a block after the first repeat, with its verdict.

    `runs` are those of the block, `predicted` the rows before it. A setting with failed decodes is
    neither beaten nor compared, as it may be fast because it fails. Where a prediction turns out to
    be wrong, no other one of the block is believed.
    """
    before = {row["setting"]: dict(row) for row in predicted}
    rows = {arm: _row(block, arm) | before.get(setting_of(block, arm), {}) for arm in arms}
    pairs = with_speedups(undisturbed(runs))
    logs = {}
    for arm, row in rows.items():
        own = pairs[(pairs["draft"] == arm.setting) & (pairs["gamma"] == arm.gamma)]
        own = own[own["forced_acceptance"].isna()]
        if len(own) and not own["decode_failures"].fillna(0).any():
            speedups = own["speedup"].astype(float)
            logs[arm] = speedups.map(math.log).groupby(own["prompt"]).mean()
            row["speedup"] = math.exp(logs[arm].mean())
    table = pd.DataFrame(logs).dropna().to_numpy(float).T
    if table.size and table.shape[-1] > 1:  # one prompt says nothing of others
        low, high = first_ends(table, statistics)
        beaten = beaten_in_first(table, statistics, margin)
        answer = str(answer_so_far(table, statistics))
        for arm, least, most, one in zip(logs, low, high, beaten, strict=True):
            rows[arm] |= {"speedup_low": math.exp(least), "speedup_high": math.exp(most)}
            rows[arm]["verdict"] = Verdict.FIRST if one else Verdict.CONTENDER
            rows[arm]["so_far"] = answer
    known = [row for row in rows.values() if {"predicted", "speedup_low"} <= row.keys()]
    if any(
        row["speedup_high"] < row["predicted_low"] or row["speedup_low"] > row["predicted_high"]
        for row in known
    ):
        for row in rows.values():
            if row["verdict"] == Verdict.PREDICTED:
                row["verdict"] = Verdict.CONTENDER
    return [*rows.values()]


def _row(block: Block, arm: Arm) -> dict[str, Any]:
    return {
        "setting": setting_of(block, arm),
        "suite": block.suite,
        "target": block.target,
        "level": block.level,
        "draft": arm.setting,
        "gamma": arm.gamma,
        "verdict": Verdict.CONTENDER,
    }


def choose_contenders(campaign: LoadedCampaign, stage: int, out: Path) -> None:
    """Write which settings are measured after a stage, and print what is known of all of them."""
    config, asked = campaign.config, Asked(campaign)
    statistics, margin = config.statistics, config.measurement.drop_beaten
    if margin is None:
        raise ConfigError("all settings are measured: measurement.drop_beaten is not set; set it")
    infos = {name: load_info(campaign.info(name)) for name in campaign.config.measured_networks}
    blocks = [one for one in campaign.blocks.values() if not one.repeat and one.speculates]
    rows, labels = [], {}
    if stage == 0:
        passes = undisturbed_passes(read_passes(asked, repeats=[0]))
        files = [campaign.folder / f"agreement/{draft}.json" for draft in campaign.draft_scoring]
        read = [row for file in files for row in rows_of_draft(read_record(file))]
        scores = scores_by_run(pd.DataFrame(read)) if read else {}
    else:
        before = read_record(campaign.contenders(0))["settings"]
    for block in blocks:
        arms = select_arms(block, config.audit.unrelated_drafts, infos)
        for arm in arms:
            assert arm.method
            file = config.label(arm.draft_model) if arm.draft_model else None
            draft = draft_label(arm.method, file, vars(arm))
            labels[setting_of(block, arm)] = config.label(block.target), f"{draft}, γ = {arm.gamma}"
        if stage == 0:
            texts = texts_of(block).block
            plain = rows_of_block(asked, texts) if texts in campaign.blocks else []
            replays = infos[block.target].replays
            facts = frame_of(plain), scores, passes, statistics, margin
            rows += predict(block, arms, *facts, replays=replays)
        else:
            runs = frame_of(rows_of_block(asked, block.block))
            rows += compare_first(block, arms, runs, before, statistics, margin)
    for row in rows:
        row["measured"] = row["verdict"] == Verdict.CONTENDER
    replace_text(out, json.dumps({"settings": rows}, indent=1) + "\n")
    print(describe(rows, stage, labels))


def describe(
    rows: Iterable[Mapping[str, Any]], stage: int, labels: Mapping[str, tuple[str, str]]
) -> str:
    """Return the table of all settings after a stage, and what it says of each comparison.

    `labels` has those of the target and of the setting.
    """
    known, several = "speedup" if stage else "predicted", len({row["suite"] for row in rows}) > 1
    cells = []
    for row in rows:
        target, setting = labels[row["setting"]]
        target = ", ".join(filter(None, [target, row["suite"] * several, row["level"]]))
        own = {**row, "target": target, "setting": setting, "known": row.get(known)}
        for name in ("predicted", "speedup"):
            value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
            own[name] = measured(value, low, high, wide=TOO_FEW_PROMPTS)
        cells.append(own | {"unknown": not row.keys() & {"predicted", "speedup"}})
    heads = ["target", "setting", *dict.fromkeys(["predicted", known]), "verdict"]
    table = in_columns([heads, *([str(own[head]) for head in heads] for own in cells)])
    values = {"stage": stage, "table": table, "rows": cells, "known": known}
    return fill_template(ROOT / "paper/stage.txt.j2", **values)
