"""Text for the terminal: a campaign's advice, a suite, and the end of a measurement.

Advice is written by the templates `advice.txt.j2` and `advice.md.j2`, and as JSON; `environment` is
that of the templates of paper and page too.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from specmoe import text
from specmoe.analysis import number_text, summaries, views
from specmoe.analysis.advice import Controls, Status
from specmoe.analysis.decision import Answer
from specmoe.analysis.follow_up import Need, with_options
from specmoe.analysis.number_text import interval
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.analysis.summaries import SETTING, make_pairs
from specmoe.config.block import NO_DRAFT
from specmoe.config.engines import Backend
from specmoe.config.schema import Config
from specmoe.files import read_record, replace_text
from specmoe.plan.campaign import ROOT, LoadedCampaign
from specmoe.records import head_of
from specmoe.runs.schema import excluded, read_runs
from specmoe.text import counted, duration, in_columns

# The interval that decides an answer, by its columns; `simultaneous` decides all others.
_DECIDES = {Answer.ON: "other_prompts", Answer.OFF: "setting", Answer.UNKNOWN: ""}


def machine_of(campaign: Mapping[str, Any]) -> str:
    """Return the name of what computed in a campaign, from the row of `Analysis.campaign`."""
    gpu = campaign.get("machine_gpu")
    chip = campaign["machine_chip"] if campaign["backend"] == Backend.CPU or pd.isna(gpu) else gpu
    return str(chip)


def render_advice(analysis: Analysis, template: Path, details: Path) -> str:
    """Return what to switch on, target by target, as a template says it.

    `details` is where a reader finds every setting.
    """
    advice, advised = analysis.advice, views.advised_targets(analysis)
    settings, categories = analysis.advice_settings, analysis.categories
    campaign = records(analysis.campaign)[0]
    env = environment(template.parent, _unescaped)
    env.filters.update(deciding=deciding, in_columns=in_columns)
    return env.get_template(template.name).render(
        campaign=campaign,
        session=math.expm1(campaign["session_reach"]),
        audit=views.whole_audit(analysis),
        beside=views.beside_others(analysis),
        controlled=records(advice[advice["controls"] != Controls.NONE]),
        advised=records(advised),
        without=[*advice.loc[~advice["target"].isin(advised["target"]), "target"]],
        settings={name: records(own) for name, own in settings.groupby("target")},
        other_prompt_sets=views.settings_on_other_prompts(analysis),
        states=views.clear_states(analysis),
        categories={name: records(own) for name, own in categories.groupby("target")},
        details=details,
        Answer=Answer,
        Need=Need,
        Status=Status,
        too_few=number_text.TOO_FEW_PROMPTS,
    )


def _unescaped(value: object) -> Markup:
    """Return a value as a terminal shows it, where nothing is escaped."""
    return Markup(number_text.shown(value))  # noqa: S704


def environment(
    templates: Path, printed: Callable[[Any], str] = number_text.shown, **syntax: str
) -> jinja2.Environment:
    """Return `text.environment` with what templates of an analysis use."""
    env = text.environment(templates, printed, **syntax)
    numbers = ("fixed", "percent", "thousands", "memory", "interval", "measured_in")
    texts = ("span", "day", "short_commits", "prompt_text", "prompts_in_short")
    rows = ("reported_pairs", "study_commands", "study_rounds")
    for module, names in ((number_text, (*numbers, *texts)), (views, rows)):
        env.filters.update({name: getattr(module, name) for name in names})
    env.filters.update(machine_of=machine_of, records=records)
    env.tests["known"] = pd.notna
    return env


def deciding(row: Record) -> str:
    """Return the interval that decides an answer, which allows for another session."""
    ends = _DECIDES.get(Answer(row["answer"]), "simultaneous")
    return interval(row[f"{ends}_low"], row[f"{ends}_high"]) if ends else ""


def advice_values(analysis: Analysis) -> dict[str, Any]:
    """Return the advice as plain values; an unknown value is null."""

    def plain(name: str) -> list[Record]:
        frame = getattr(analysis, name)[[*TABLES[name].columns]]
        frame = frame.drop(columns="log_speedups", errors="ignore")  # of repeats, for the study
        return records(frame.astype(object).where(frame.notna(), None))

    targets, settings, categories = map(plain, ("advice", "advice_settings", "categories"))
    for row in targets:
        row["measured"] = [one for one in settings if one["target"] == row["target"]]
        if by_category := [one for one in categories if one["target"] == row["target"]]:
            row["by_category"] = by_category
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


def summarise_suite(runs: pd.DataFrame, suite: str, config: Config) -> str:
    """Return a suite's rates, and speedups with their intervals, as tables of plain text.

    `runs` holds the suite's rows and those of the suite that has its baselines.
    """
    own = runs[runs["suite"] == suite]
    plain = own[own["draft"] == NO_DRAFT]
    rates = plain.groupby(["target", "prompt", "temperature"])["tokens_per_second"]
    pairs = make_pairs(runs, config.audit.unrelated_drafts, {})
    setting = [*SETTING, "condition"]
    settings = summaries.summarise(pairs[pairs["suite"] == suite], setting, config.statistics)
    shown = [*setting[1:], "tokens_per_second", "acceptance_rate"]
    shown += ["speedup", "speedup_low", "speedup_high"]
    tables = [rates.agg(["mean", "std"]).reset_index(), settings.reindex(columns=shown)]
    printed = [
        table.dropna(axis="columns", how="all").to_string(index=False, float_format="%.2f")
        for table in tables
        if len(table)
    ]
    head = f"Suite {suite}: {config.suites[suite].title}, {counted(len(own), 'run')}"
    return "\n\n".join([head, *printed]) + "\n"


def summarise(campaign: LoadedCampaign, suite: str) -> None:
    """Print what one suite measured."""
    rows = read_runs(campaign.folder / f"suites/{suite}.parquet")
    print(summarise_suite(rows, suite, campaign.config))


def finish(campaign: LoadedCampaign) -> None:
    """Print how a campaign's measurement ended and where results are, once all are there."""
    runs, records = campaign.data / "runs.parquet", campaign.record_files(campaign.blocks)

    def is_newer(file: Path, than: Path) -> bool:
        return file.exists() and than.exists() and file.stat().st_mtime >= than.stat().st_mtime

    if not all(is_newer(runs, record) for record in records):
        return
    rows, audit = read_runs(runs), campaign.folder / "audit/audit.txt"
    results = (campaign.folder / "page/index.html", Path("paper/main.pdf"), Path("paper/main.tex"))
    tables = campaign.folder / "analysis"
    analysed = is_newer(tables / "upcycled_pairs.parquet", runs)
    env = environment(ROOT / "paper", _unescaped)
    text = env.get_template("finished.txt.j2").render(
        experiment=views.experiment(Analysis.read(tables)) if analysed else {},
        runs=len(rows),
        time=duration(sum(head.seconds for head in map(head_of, records) if head)),
        again=int((rows["reruns"] > 0).sum()),
        excluded=len(excluded(rows)),
        audit=audit.read_text().partition("\n")[0] if is_newer(audit, runs) else "",
        results=[file for file in results if is_newer(file, runs)][:2],
    )
    print(text, end="")
