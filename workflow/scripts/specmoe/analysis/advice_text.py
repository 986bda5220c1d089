"""A campaign's advice, by the templates `advice.txt.j2` and `advice.md.j2`, and as JSON."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

from specmoe.analysis import number_text, views
from specmoe.analysis.advice import Controls, Status
from specmoe.analysis.decision import DECIDES, Answer
from specmoe.analysis.follow_up import Need, with_options
from specmoe.analysis.number_text import interval
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.analysis.templates import analysis_templates, unescaped
from specmoe.files import ROOT, read_record, replace_text
from specmoe.text import in_columns


def render_advice(analysis: Analysis, template: Path, details: Path) -> str:
    """Return what to switch on, target by target, as a template says it.

    `details` is where a reader finds every setting.
    """
    advice, advised = analysis.advice, views.advised_targets(analysis)
    settings, categories = analysis.advice_settings, analysis.categories
    campaign = records(analysis.campaign)[0]
    env = analysis_templates(template.parent, unescaped)
    env.filters.update(deciding=deciding_interval, in_columns=in_columns)
    return env.get_template(template.name).render(
        campaign=campaign,
        session=math.expm1(advice["session"].max()),
        audit=views.whole_audit(analysis),
        beside=views.beside_others(analysis),
        controlled=records(advice[advice["controls"] != Controls.NONE]),
        advised=records(advised),
        without=[*advice.loc[~advice["target"].isin(advised["target"]), "label"]],
        settings={name: records(rows) for name, rows in settings.groupby("target")},
        other_prompt_sets=views.settings_on_other_prompts(analysis),
        states=views.clear_states(analysis),
        kinds={name: records(rows) for name, rows in analysis.advice_kinds.groupby("target")},
        categories={name: records(rows) for name, rows in categories.groupby("target")},
        levels=views.fastest_at_levels(analysis),
        details=details,
        Answer=Answer,
        Need=Need,
        Status=Status,
        too_few=number_text.TOO_FEW_PROMPTS,
    )


def deciding_interval(row: Record) -> str:
    """Return the interval that decides an answer, which allows for another session."""
    ends = DECIDES[Answer(row["answer"])]
    return interval(row[f"{ends}_low"], row[f"{ends}_high"]) if ends else ""


def advice_values(analysis: Analysis) -> dict[str, Any]:
    """Return the advice as plain values; an unknown value is null."""

    def plain(name: str) -> list[Record]:
        frame = getattr(analysis, name)[[*TABLES[name].columns]]
        frame = frame.drop(columns="log_speedups", errors="ignore")  # of repeats, for the study
        return records(frame.astype(object).where(frame.notna(), None))

    parts = {"measured": "advice_settings", "kinds": "advice_kinds", "by_category": "categories"}
    targets, rows = plain("advice"), {name: plain(table) for name, table in parts.items()}
    for row, name in product(targets, parts):
        own = [one for one in rows[name] if one["target"] == row["target"]]
        row |= {name: own} if own or name == "measured" else {}
    confidence = float(analysis.campaign["confidence"].iloc[0])
    return {"campaign": analysis.name, "confidence": confidence, "targets": targets}


def advise(analysis: Path, stages: tuple[Path, ...] = (), options: str = "--config ") -> None:
    """Print the advice of an analysis, a folder; write its values as JSON and details beside it.

    `stages` is what was decided in a campaign in stages: the JSON has its settings, those too that
    were measured no further; `options` configure the campaign, for the lines to be pasted.
    """
    tables = Analysis.read(analysis)
    lines = tables.advice["command"].map(lambda line: with_options(line, options), "ignore")
    tables = Analysis(tables.tables, advice=tables.advice.assign(command=lines))
    values, out = advice_values(tables), analysis.with_name("advice.json")
    for file in stages:
        values["settings"] = read_record(file)["settings"]
    replace_text(out, json.dumps(values, indent=1, allow_nan=False) + "\n")
    details = out.with_suffix(".md")
    replace_text(details, render_advice(tables, ROOT / "paper/advice.md.j2", details))
    print(render_advice(tables, ROOT / "paper/advice.txt.j2", details), end="")
