"""The paper's tables: for each, what its template is given; the template says how it looks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.analysis.advice import Answer
from specmoe.analysis.build import Analysis
from specmoe.analysis.controls import Control
from specmoe.analysis.labelled import (
    Record,
    advised_targets,
    cells_by_type,
    cells_by_way,
    control_cells,
    count_check,
    describe_cells,
    judged_claims,
    length_cells,
    ordered_audit,
    ordered_baselines,
    ordered_models,
    prompt_cells,
    records,
    spread_cells,
    table,
    temperature_cells,
    text_cells,
    usual_cells,
    way_words,
    whole_audit,
)
from specmoe.analysis.labelled_costs import (
    break_even_cells,
    cells_below_ceilings,
    pass_costs,
    prediction_error_rows,
)
from specmoe.audit.checks import ALL
from specmoe.claims.verdicts import Verdict
from specmoe.config.block import NO_DRAFT
from specmoe.config.study import CELLS
from specmoe.paper.latex import NULL, Raw, bandwidth, environment, fixed, memory

Context = Mapping[str, Any]

NOT_MEASURED = r"""\begin{tabular}{c}
\toprule
Not measured in this campaign. \\
\bottomrule
\end{tabular}
"""

COMMIT_DIGITS = 12

# What the campaign's columns are called in the table of conditions.
_CONDITIONS = {
    "host_chip": "Processor",
    "host_performance_cores": "Performance cores",
    "host_efficiency_cores": "Efficiency cores",
    "host_physical_cores": "Physical cores",
    "host_logical_cores": "Logical cores",
    "host_memory_bytes": "Memory",
    "host_gpu": "GPU",
    "host_gpu_count": "GPUs",
    "host_gpu_memory_bytes": "GPU memory",
    "host_memory_bandwidth_bytes_per_second": "Memory bandwidth",
    "host_memory_bandwidth_source": "Bandwidth from",
    "host_power_source": "Power",
    "host_thermal_state": "Thermal state",
    "host_given": "Stated by hand",
    "host_system": "System",
    "host_id": "Machine",
    "engine": "Engine (llama.cpp)",
    "engine_commit": "Engine commit",
    "backend": "Backend",
    "protocol": "Protocol",
    "load_average_max": "Highest load average",
}
# The columns of the table of findings, in its order: what it calls each check of the audit.
_CHECKED = (
    "accounting",
    "draft_time",
    "bandwidth",
    "failed_decodes",
    "losslessness",
    "determinism",
)
_CHECK_WORDS = {
    "accounting": "Accounting: counts add up",
    "draft_time": "Draft time: rounds and drafts fit into the time",
    "bandwidth": "Bandwidth: passes read no faster than memory gives",
    "failed_decodes": "Failed decodes: none",
    "losslessness": "Losslessness: the baseline's tokens, or a tie",
    "determinism": "Determinism: repeats give the same tokens",
    "controls": "Controls: known outcomes come out",
}
_FAMILIES = {"moe": "MoE", "dense": "dense"}


def has_rows(context: Context) -> bool:
    """Return whether a campaign measured anything that a table would show."""
    return bool(context.get("rows") or context.get("groups"))


def rows_of(context: Context) -> list[Record]:
    """Return the rows of a context, those of groups with what the group says of them."""
    if "groups" not in context:
        return list(context["rows"])
    return [group | row for group in context["groups"] for row in group["rows"]]


def render_table(name: str, analysis: Analysis, templates: Path) -> str:
    """Return a table as a `tabular`; one that says so if the campaign measured nothing of it."""
    context = TABLES[name](analysis)
    if not has_rows(context):
        return NOT_MEASURED
    template = environment(templates).get_template(f"{name}.tex.j2")
    return template.render(context, confidence=_campaign(analysis)["confidence"])


def suites(analysis: Analysis) -> Context:
    """Return the suites, and their sums."""
    frame = table(analysis, "suites")
    return {"rows": records(frame), "total": frame[["blocks", "runs", "measured"]].sum().to_dict()}


def models(analysis: Analysis) -> Context:
    """Return the models with their part in the campaign."""
    frame = ordered_models(analysis)
    cells, controls = usual_cells(analysis), control_cells(analysis)
    imposed = table(analysis, "verification")  # pairs whose acceptance was imposed
    frame["family"] = frame["family"].map(_FAMILIES)
    frame["role"] = [
        ", ".join(
            role
            for role, members in [
                ("target", {*cells["target"], *imposed["target"]}),
                ("draft", {*cells["draft"], *imposed["draft"]}),
                ("control", set(controls.loc[controls["control"] == Control.UNRELATED, "draft"])),
            ]
            if model in members
        )
        or "baseline"
        for model in frame["model"]
    ]
    return {"rows": records(frame)}


def hardware(analysis: Analysis) -> Context:
    """Return what the campaign ran on, as pairs of a name and a value."""
    campaign = _campaign(analysis)
    values = campaign | {
        "host_memory_bytes": memory(campaign.get("host_memory_bytes")),
        "host_gpu_memory_bytes": memory(campaign.get("host_gpu_memory_bytes")),
        "host_memory_bandwidth_bytes_per_second": bandwidth(
            campaign.get("host_memory_bandwidth_bytes_per_second")
        ),
        "engine_commit": short_commits(campaign["engine_commit"]),
        "load_average_max": fixed(campaign.get("load_average_max"), 1),
    }
    told = [key for key in _CONDITIONS if not (pd.isna(campaign.get(key)) or campaign[key] == "")]
    return {"rows": [(_CONDITIONS[key], values[key]) for key in told]}


def short_commits(commits: str) -> str:
    """Return the first digits of each commit; a campaign of several engines has several."""
    return ", ".join(commit[:COMMIT_DIGITS] for commit in commits.split(", "))


def baselines(analysis: Analysis) -> Context:
    """Return the rates without a draft, one row per target."""
    return {"rows": records(ordered_baselines(analysis))}


def speculation(analysis: Analysis) -> Context:
    """Return the cells of each target; the one of highest speedup is marked `best`."""
    cells = text_cells(analysis)
    cells["best"] = cells["speedup"] == cells.groupby("series")["speedup"].transform("max")
    return {"groups": _groups(cells, ["draft"])}


def drafts(analysis: Analysis) -> Context:
    """Return the cells of targets with several drafts: for each γ, one cell (or null) per draft."""
    cells = text_cells(analysis)
    cells = cells[cells.groupby("series")["draft"].transform("nunique").gt(1)]
    names = cells.sort_values("draft_rank").drop_duplicates("draft").set_index("draft")
    groups = [
        {
            "label": group["label"],
            "rows": [
                {
                    "gamma": gamma,
                    "cells": [
                        _find(group["rows"], draft=draft, gamma=gamma) for draft in names.index
                    ],
                }
                for gamma in sorted({row["gamma"] for row in group["rows"]})
            ],
        }
        for group in _groups(cells, ["draft"])
    ]
    return {"drafts": names["draft_label"].tolist(), "groups": groups}


def prompts(analysis: Analysis) -> Context:
    """Return the cells of each target by text, if the campaign sends several."""
    cells = prompt_cells(analysis)
    several = cells["prompt"].nunique() > 1
    return {"groups": _groups(cells if several else cells.head(0), ["draft", "gamma"])}


def prompt_lengths(analysis: Analysis) -> Context:
    """Return the cells of each target by prompt length."""
    cells = length_cells(analysis)
    unit = _campaign(analysis)["length_unit"]
    return {"groups": _groups(cells, ["draft", "gamma"]), "unit": unit}


def temperatures(analysis: Analysis) -> Context:
    """Return the cells of each target by temperature."""
    return {"groups": _groups(temperature_cells(analysis), ["draft", "gamma"])}


def types(analysis: Analysis) -> Context:
    """Return the cells of networks that were measured in files of several types."""
    return {"groups": _groups(cells_by_type(analysis), ["draft", "gamma"])}


def controls(analysis: Analysis) -> Context:
    """Return the controls, with the acceptance that is due and the runs that fail."""
    rows = records(control_cells(analysis))
    return {"rows": [row | {"counted": _broken(row, "controls")} for row in rows]}


def advice(analysis: Analysis) -> Context:
    """Return what to switch on, one row per target that was measured with a draft."""
    return {"rows": records(advised_targets(analysis)), "on": Answer.ON}


def spread(analysis: Analysis) -> Context:
    """Return the spread of every cell between and within its blocks, and the repeats it needs."""
    cells = spread_cells(analysis)
    return {
        "groups": _groups(cells, ["draft"]),
        "varied": bool((cells["at"] != "").any()),
        "precision": _campaign(analysis)["precision"],
    }


def protocols(analysis: Analysis) -> Context:
    """Return the cells that were measured in several ways, by target, draft and way."""
    cells = cells_by_way(analysis)
    cells["label"], cells["series"] = cells["target_label"], cells["target"]
    return {"groups": _groups(cells, ["way", "draft"])}


def identity(analysis: Analysis) -> Context:
    """Return, per target and draft over all suites and γ, how many runs' tokens are the baseline's.

    Columns: label, draft_label, runs (whose tokens are known), identical (runs), common_prefix_min
    (tokens).
    """
    cells = describe_cells(table(analysis, "cells"), analysis)
    cells = cells[cells["identical"].notna()]
    cells = cells.assign(identical=(cells["identical"] * cells["runs"]).astype(float).round())
    frame = (
        cells.groupby(["target_rank", "draft_rank"])
        .agg(
            target=("target", "first"),
            draft_label=("draft_label", "first"),
            runs=("runs", "sum"),
            identical=("identical", "sum"),
            common_prefix_min=("common_prefix_min", "min"),
        )
        .reset_index(drop=True)
    )
    labels = ordered_models(analysis).set_index("model")["label"]
    frame["label"] = frame["target"].map(labels)
    return {"rows": records(frame), "n_predict": _campaign(analysis)["n_predict"]}


def _campaign(analysis: Analysis) -> Record:
    return records(analysis.campaign)[0]


def audit(analysis: Analysis) -> Context:
    """Return how many runs break each check, per target, draft and γ, and in all."""
    labels = table(analysis, "models").set_index("model")["label"].to_dict()
    words = labels | {NO_DRAFT: Raw(NULL), ALL: "all"}
    rows = [
        row
        | {
            "label": words.get(row["target"], row["target"]),
            "draft_label": words.get(row["draft"], row["draft"]),
            "cells": [_broken(row, check) for check in _CHECKED],
        }
        for row in records(ordered_audit(analysis))
    ]
    return {"rows": rows}


def reported(analysis: Analysis) -> Context:
    """Return, for each place of the published study, how many of its numbers its rows give."""
    frame = table(analysis, "reported")
    counted = frame.groupby("source", sort=False).agg(
        cells=("equal", "size"), equal=("equal", "sum")
    )
    return {"rows": records(counted.reset_index())}


def differences(analysis: Analysis) -> Context:
    """Return the numbers of the published study that its rows do not give."""
    frame = table(analysis, "reported")
    rows = records(frame[~frame["equal"].astype(bool)])
    return {
        "rows": [
            row | {"recomputed": fixed(row["recomputed"], max(int(row["digits"]), 2))}
            for row in rows
        ]
    }


def claims(analysis: Analysis) -> Context:
    """Return the study's claims with what the campaign says of them, by way if it has several.

    Those that it cannot test come last.
    """
    groups = [
        {"way": way, "rows": records(members.sort_values("verdict", key=_untested, kind="stable"))}
        for way, members in judged_claims(analysis).groupby("way", sort=False)
    ]
    return {"groups": groups}


def _untested(verdicts: "pd.Series[str]") -> "pd.Series[bool]":
    return verdicts == Verdict.NOT_TESTABLE


def method_notes(analysis: Analysis) -> Context:
    """Return the notes on the method, each with its finding."""
    return {"rows": records(table(analysis, "method_notes"))}


def comparison(analysis: Analysis) -> Context:
    """Return the study's cells and headline numbers: printed, from its rows, measured here.

    Numbers that no campaign gives are left out. `groups` are the cells of each target, `rows` the
    headline numbers.
    """
    frame = table(analysis, "comparison")
    numbers = [_compared(row) for row in records(frame)]
    frame = frame.assign(numbers=pd.Series(numbers, index=frame.index, dtype=object))
    known = frame[["recomputed", "measured"]].notna().any(axis=1)
    of_cell = frame["source"] == CELLS
    headline = frame[known & ~of_cell]
    words = headline["what"].str.replace("acceptance_percent", "acceptance rate (%)")
    return {
        "groups": _cell_groups(frame[of_cell], set(frame.loc[known, "what"]), analysis),
        "rows": records(headline.assign(what=words)),
    }


def compared_campaigns(analysis: Analysis) -> Context:
    """Return the campaigns that are set side by side, each with what it ran on."""
    frame = table(analysis, "compared_campaigns")
    commits = frame["engine_commit"].map(short_commits)
    return {"rows": records(frame.assign(way=way_words(frame), engine_commit=commits))}


def side_by_side(analysis: Analysis) -> Context:
    """Return the settings of all campaigns compared: for each, one cell (or null) per heading.

    `other_files` says that the campaigns are not known to have the same files of its models.
    """
    frame = table(analysis, "side_by_side")
    headings = table(analysis, "compared_campaigns")["heading"].tolist()
    groups = []
    for (label, prompts, suite), members in frame.groupby(
        ["target_label", "prompts", "suite"], sort=False
    ):
        rows = [
            {
                "draft_label": draft,
                "gamma": gamma,
                "other_files": bool(cells["same_files"].eq(False).any()),
                "cells": [_find(records(cells), heading=heading) for heading in headings],
            }
            for (draft, gamma), cells in members.groupby(["draft_label", "gamma"], sort=False)
        ]
        groups.append({"label": label, "prompts": prompts, "suite": suite, "rows": rows})
    return {"headings": headings, "groups": groups}


def _cell_groups(frame: pd.DataFrame, known: set[str], analysis: Analysis) -> list[Record]:
    """Return the study's cells by target, those left out of which no number is `known`."""
    labels = table(analysis, "models").set_index("model")["label"].to_dict()
    cells: dict[str, Record] = {}
    for what, numbers in frame[["what", "numbers"]].itertuples(index=False):
        quantity, cell = what.split(" ", 1)
        entry = cells.setdefault(cell, {"known": False, "numbers": {}})
        entry["numbers"][quantity] = numbers
        entry["known"] |= what in known
    groups: dict[str, list[Record]] = {}
    for cell, entry in cells.items():
        target, draft, gamma = cell.split()
        if entry["known"]:
            row = entry | {"draft_label": labels.get(draft, draft), "gamma": gamma}
            groups.setdefault(labels.get(target, target), []).append(row)
    return [{"label": label, "rows": rows} for label, rows in groups.items()]


def _compared(row: Record) -> list[Any]:
    """Return a number as printed, and from both campaigns at the printed digits.

    Below a bound two digits are shown, or a number just under it would look like it.
    """
    bound = row["relation"] == "<"
    digits = 2 if bound else int(row["digits"])
    printed = f"< {row['printed']}" if bound else row["printed"]
    return [printed, fixed(row["recomputed"], digits), fixed(row["measured"], digits)]


def verification(analysis: Analysis) -> Context:
    """Return what passes and rounds cost, by target and width."""
    return {"groups": _groups(pass_costs(analysis), ["draft"])}


def break_even(analysis: Analysis) -> Context:
    """Return the speedup of each cell between its floor and ceiling, by target."""
    return {"groups": _groups(break_even_cells(analysis), ["draft"])}


def prediction_errors(analysis: Analysis) -> Context:
    """Return how far the cost model's predictions are off, by suite and in all."""
    return {"rows": records(prediction_error_rows(analysis))}


def ceilings(analysis: Analysis) -> Context:
    """Return each cell's speedup and the most it could have been, by target."""
    cells = cells_below_ceilings(analysis)
    return {"groups": _groups(cells, ["draft"]), "printed": bool(cells["printed"].notna().any())}


def findings(analysis: Analysis) -> Context:
    """Return what each check of the audit that applies to any run found in all of them."""
    whole = whole_audit(analysis)
    return {
        "rows": [
            {"name": check, "check": words, **counted}
            for check, words in _CHECK_WORDS.items()
            for counted in [count_check(whole, check)]
            if counted["runs"]
        ]
    }


def _broken(row: Record, check: str) -> str:
    """Return `broken / applicable`, or a dash if the check applies to none of the runs."""
    counted = count_check(row, check)
    return f"{counted['failed']} / {counted['runs']}" if counted["runs"] else Raw(NULL)


def _groups(cells: pd.DataFrame, repeated: Sequence[str]) -> list[Record]:
    """Return each series' label and rows; `first` marks those where a `repeated` value is new."""
    groups = []
    for _, members in cells.groupby("series", sort=False):
        values = members[list(repeated)]
        rows = records(members.assign(first=(values != values.shift()).any(axis=1)))
        groups.append({"label": rows[0]["label"], "rows": rows})
    return groups


def _find(rows: Sequence[Record], **wanted: object) -> Record | None:
    return next((row for row in rows if all(row[key] == wanted[key] for key in wanted)), None)


TABLES: dict[str, Callable[[Analysis], Context]] = {
    function.__name__: function
    for function in (
        suites,
        models,
        hardware,
        baselines,
        speculation,
        drafts,
        prompts,
        prompt_lengths,
        temperatures,
        types,
        controls,
        spread,
        advice,
        protocols,
        identity,
        verification,
        prediction_errors,
        break_even,
        audit,
        findings,
        ceilings,
        reported,
        differences,
        claims,
        method_notes,
        comparison,
        compared_campaigns,
        side_by_side,
    )
}
