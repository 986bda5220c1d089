"""The rows of the tables about a campaign itself, in order, as values that columns format.

Each function of a table's name returns a frame, or `Rows` if there is more to say.
`paper/tables.yaml` names the columns. `series` marks the rows that belong together.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from specmoe.analysis.advice import Answer, Controls
from specmoe.analysis.cost_tables import WHOLE
from specmoe.analysis.drafts import Control
from specmoe.analysis.filters import (
    advised_targets,
    cells_by_way,
    control_cells,
    count_check,
    text_cells,
    usual_cells,
    whole_audit,
)
from specmoe.analysis.number_text import bandwidth, fixed, memory, percent
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.analysis.sentences import prompt_words
from specmoe.analysis.summaries import fastest
from specmoe.audit.checks import CHECKS, Forged
from specmoe.audit.finding import Level

FAMILY_WORDS = {"moe": "MoE", "dense": "dense"}

CONDITIONS = {
    "host_chip": "Processor",
    "host_physical_cores": "Physical cores",
    "host_logical_cores": "Logical cores",
    "host_memory_bytes": "Memory",
    "host_gpu": "GPU",
    "host_gpu_count": "GPUs",
    "host_gpu_memory_bytes": "GPU memory",
    "host_devices": "Devices of the engine",
    "host_memory_bandwidth_bytes_per_second": "Memory bandwidth",
    "host_memory_bandwidth_source": "Bandwidth from",
    "host_power_source": "Power",
    "host_given": "Stated by hand",
    "host_system": "System",
    "host_id": "Machine",
    "engine": "Engine (llama.cpp)",
    "engine_commit": "Engine commit",
    "backend": "Backend",
    "protocol": "Protocol",
    "load_average_max": "Highest load average",
    "engine_options": "Engine options",
    "arrangement": "Sides of a block",
    "measured_again": "Runs measured again",
    "taken_away": "Runs disturbed to the last",
    "excluded": "Runs in no estimate, with their pairs",
}
"""The campaign's columns in the table of conditions, and their names there."""

CONTROLS = {
    Control.ITSELF: ("drafts for itself", "≥"),
    Control.UNRELATED: ("unrelated draft", "≤"),
}
"""The name of a control, and on which side of the due acceptance it must be."""

_COMMIT_DIGITS = 12


@dataclass(frozen=True)
class Rows:
    """The rows of a table by column, then its totals.

    `of` names the drafts, campaigns or positions that the table sets side by side; each row then
    has one record (or None) for each of them in `cells`.
    """

    rows: list[Record]
    totals: list[Record] = field(default_factory=list)
    of: Sequence[str] = ()


def short_commits(commits: str) -> str:
    """Return the first digits of each commit; a campaign of several engines has several."""
    return ", ".join(commit[:_COMMIT_DIGITS] for commit in commits.split(", "))


protocols = cells_by_way


def suites(analysis: Analysis) -> Rows:
    """Return the suites, and their sums."""
    frame = analysis.suites
    sums = {key: frame[key].sum() for key in ("blocks", "runs", "measured")}
    return Rows(records(frame), [{"suite": "", "title": "Total"} | sums])


def models(analysis: Analysis) -> Rows:
    """Return the models with their roles in the campaign; a dense one has no experts."""
    cells, controls = usual_cells(analysis), control_cells(analysis)
    levels = analysis.levels
    members = {
        "target": {*cells["target"], *levels["target"]},
        "draft": {*cells["draft_model"], *levels["draft_model"]},
        "control": set(controls.loc[controls["control"] == Control.UNRELATED, "draft_model"]),
    }
    rows = []
    for model in records(analysis.models):
        roles = [role for role, names in members.items() if model["model"] in names]
        row = model | {
            "family": FAMILY_WORDS[model["family"]],
            "role": ", ".join(roles) or "baseline",
        }
        if model["family"] != "moe":
            row["experts"] = None
        rows.append(row)
    return Rows(rows)


def hardware(analysis: Analysis) -> Rows:
    """Return what the campaign ran on, one row per condition that is known."""
    campaign = records(analysis.campaign)[0]
    formats: dict[str, Callable[[Any], str]] = {
        "host_memory_bytes": memory,
        "host_gpu_memory_bytes": memory,
        "host_memory_bandwidth_bytes_per_second": bandwidth,
        "engine_commit": short_commits,
        "load_average_max": fixed,
    }
    rows = []
    for key, condition in CONDITIONS.items():
        value = campaign.get(key)
        if not pd.isna(value) and value != "":
            rows.append({"condition": condition, "value": formats.get(key, str)(value)})
    return Rows(rows)


def speculation(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of each target; the fastest on the same prompts is marked `best`."""
    cells = text_cells(analysis)
    return mark_unpaired(cells.assign(best=fastest(cells)))


def set_beside(groups: Iterable[Any], column: str, values: Iterable[Any]) -> list[Record]:
    """Return a row for each group of a `groupby`: its first row, and `cells`, one for each value.

    They are the group's rows with that value of `column`; the first if there are several, or None.
    """
    rows = []
    for _, members in groups:
        cells = records(members)
        by_value = {cell[column]: cell for cell in reversed(cells)}
        rows.append(cells[0] | {"cells": [by_value.get(value) for value in values]})
    return rows


def controls(analysis: Analysis) -> Rows:
    """Return the controls, with the acceptance that is due and the runs that fail."""
    rows = []
    for cell in records(control_cells(analysis)):
        name, side = CONTROLS[cell["control"]]
        due = f"{side} {percent(cell['due'], 0)}"
        rows.append(cell | {"control": name, "due": due} | _counted(cell, "controls"))
    return Rows(rows)


def advice(analysis: Analysis) -> Rows:
    """Return what to switch on, one row per target that was measured with a draft."""
    rows = []
    for row in records(advised_targets(analysis)):
        on = row["answer"] == Answer.ON
        shown = {"advised": on, "reason_against": None if on else row["reason"]}
        shown["controls"] = None if row["controls"] == Controls.NONE else row["controls"]
        prompts = {
            name: prompt_words(row[key]) if isinstance(row[key], str) and row[key] else None
            for name, key in (("compared_on", "prompt_set"), ("odd", "marked_prompts"))
        }
        rows.append(row | shown | prompts)
    return Rows(rows)


def verification(analysis: Analysis) -> pd.DataFrame:
    """Return what passes and rounds cost, by target and width; one token makes no round."""
    costs = analysis.verification
    gammas = costs["gamma"].where(costs["gamma"] != 0)
    return costs.assign(gamma=gammas, untimed=~costs["timed"].astype(bool))


def prediction_errors(analysis: Analysis) -> Rows:
    """Return how far the cost model's predictions are off, by suite and in all."""
    rows: list[Record] = []
    totals: list[Record] = []
    named = dict(analysis.models[["model", "label"]].to_numpy())
    named |= dict(analysis.drafts[["draft", "label"]].to_numpy())
    for row in records(analysis.prediction_errors):
        target, draft = named[row["worst_target"]], named[row["worst_draft"]]
        row["worst_cell"] = f"{row['worst_suite']}: {target}, {draft}, γ = {row['worst_gamma']}"
        (totals if row["suite"] == WHOLE else rows).append(row)
    return Rows(rows, totals)


def break_even(analysis: Analysis) -> pd.DataFrame:
    """Return the speedup of each cell between its floor and ceiling, by target."""
    cells = analysis.break_even
    return cells.assign(imposed=cells["imposed_acceptance"].notna())


def findings(analysis: Analysis) -> Rows:
    """Return what each check of the audit that applies to any run found in all of them."""
    whole = whole_audit(analysis)
    rows = []
    for name, check in CHECKS.items():
        counted = count_check(whole, name)
        if counted["runs"] or counted["not_judged"]:
            named = {"check": check.words, "level": check.level.value, "meaning": check.meaning}
            rows.append(counted | named)
    return Rows(sorted(rows, key=lambda row: row["level"] == Level.IMPLAUSIBLE))


def power(analysis: Analysis) -> Rows:
    """Return the shares of runs that the audit would mark if they were too fast, by factor."""
    frame = analysis.power
    marked = (frame["impossible"] + frame["implausible"]) / frame["runs"]
    shares = frame.assign(impossible=frame["impossible"] / frame["runs"], marked=marked)
    rows: dict[float, Record] = {}
    for one in records(shares):
        row = rows.setdefault(one["factor"], {"factor": one["factor"], "runs": one["runs"]})
        forged = Forged(one["forged"]).name.lower()
        row |= {f"{kind}_{forged}": one[kind] for kind in ("impossible", "marked")}
    return Rows([*rows.values()])


def mark_unpaired(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with a column `unpaired`: their runs have no baselines of their own."""
    return cells.assign(unpaired=~cells["paired"].astype(bool))


def _counted(row: Record, check: str) -> Record:
    """Return `<check>_failed` and `<check>_runs`, both null if the check applies to no run."""
    counted = count_check(row, check)
    known = counted["runs"] > 0
    return {f"{check}_{key}": counted[key] if known else None for key in ("failed", "runs")}
