"""The paper and its supplement, from templates that read the analysis; what all templates know.

In the templates of the paper `<< value >>` prints a value, `<% ... %>` is a statement and
`<# ... #>` a comment, since braces belong to TeX. What is printed is escaped.
"""

from collections import Counter
from collections.abc import Collection
from math import expm1
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from specmoe.analysis import views
from specmoe.analysis.cost_tables import PAIR, WHOLE
from specmoe.analysis.decision import Answer
from specmoe.analysis.registry import Analysis, records
from specmoe.analysis.summaries import Control
from specmoe.analysis.templates import analysis_templates, text_of_experiment
from specmoe.analysis.views import ends
from specmoe.audit.checks import mostly_missed
from specmoe.audit.limits import LIMITS
from specmoe.files import replace_text
from specmoe.paper.latex import render_table, to_latex
from specmoe.tables.exhibits import PAPER, read_figures, tables_of
from specmoe.text import spreadsheet_text

DOCUMENTS = ("main", "supplement")

# In the notation of Jinja, in what TeX and these texts do not use.
_SYNTAX = {
    f"{part}_{end}_string": mark
    for part, marks in (("block", "<% %>"), ("variable", "<< >>"), ("comment", "<# #>"))
    for end, mark in zip(("start", "end"), marks.split(), strict=True)
}


def render_paper(analysis: Path) -> None:
    """Render texts, tables and figures to `paper` beside an analysis, tables as CSV to `tables`.

    The page shows those of the figures that are saved as SVG too.
    """
    from specmoe.figures.figures import save_figures  # which loads matplotlib

    results, out = Analysis.read(analysis), analysis.with_name("paper")
    cells = analysis.with_name("tables")
    texts = render_documents(results, save_figures(results, out / "figures"))
    for name, table in tables_of(results).items():
        texts[f"tables/{name}"] = render_table(name, table, results)
        rows = [[spreadsheet_text(cell.whole) for cell in row] for row in table.rows]
        frame = pd.DataFrame(rows, columns=[column.head.en for column in table.columns])
        replace_text(cells / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    for name, text in texts.items():
        replace_text(out / f"{name}.tex", text)


def render_documents(analysis: Analysis, drawn: Collection[str]) -> dict[str, str]:
    """Return the LaTeX of each of `DOCUMENTS`, by its name; `drawn` are figures that show any."""
    filled, wording = tables_of(analysis), read_figures()
    env = analysis_templates(PAPER, lambda value: Markup(to_latex(value)), **_SYNTAX)  # noqa: S704
    known: dict[str, Any] = {"tables": filled, "figures": drawn} | cited(analysis)

    def exhibits(section: str) -> Markup:
        long, shown = list[str](), list[str]()  # a table over pages comes before floats
        for name, about in wording.items():
            if about.section == section and name in drawn:
                caption = to_latex(env.from_string(about.caption).render(known))
                shown.append(rf"\floatfigure{{{name}}}{{{caption}}}")
        for name, table in filled.items():
            if table.about.section == section:
                into, kind = (long, "pagestable") if table.long else (shown, "floattable")
                keys = {column.key for column in table.columns}
                marks = {cell.mark for cells in table.rows for cell in cells}
                caption = env.from_string(table.about.caption).render(known, keys=keys, marks=marks)
                into.append(rf"\{kind}{{{name}}}{{{caption}}}")
        return Markup("".join(long + shown))  # noqa: S704

    known["exhibits"] = exhibits
    return {name: env.get_template(f"{name}.tex.j2").render(known) for name in DOCUMENTS}


def cited(analysis: Analysis) -> dict[str, Any]:
    """Return what the templates of paper and page know of a campaign, beside its tables."""
    campaign = records(analysis.campaign)[0]
    settings = views.text_settings(analysis)
    sets = Counter(", ".join(texts).replace("_", " ") for texts in settings["texts"])
    passes, judged = analysis.verification, analysis.claims
    advised, best = views.advised_targets(analysis), views.best_settings(analysis)
    whole, times = views.whole_audit(analysis), analysis.required_time
    widest = passes.groupby("series")["n_tokens"].max().min()
    predicted = analysis.prediction_errors
    forced = analysis.predictions.dropna(subset="forced_acceptance")
    printed = pd.concat([analysis.reported, analysis.comparison])
    names = analysis.compared_campaigns["campaign"].unique()
    experiment = views.experiment(analysis)
    return {
        "analysis": analysis,
        "campaign": campaign,
        "published": campaign["source"] == "study_rows",
        "totals": analysis.suites[["blocks", "runs"]].sum(),
        "repeated": max([campaign["repeats"], *settings["blocks"]]) > 1,
        "session": expm1(analysis.advice["session"].max()),
        "compared": [name for name in names if name != analysis.name],
        # The prompts of each set, after its number of settings.
        "prompt_sets": [(count, texts.split(", ")) for texts, count in sets.items()],
        "settings_shown": len(settings),
        "factors": _ends_by_family(settings, "speedup"),
        "labels_of": settings.groupby("family")["target_label"].unique().map(list).to_dict(),
        "acceptance": ends(100 * settings["acceptance_rate"]),
        "method_settings": views.method_settings(analysis),
        "varied": {*analysis.levels["factor"]},
        "at_levels": views.fastest_at_levels(analysis),
        # What the audit counts.
        "counts": whole,
        "limits": LIMITS,
        "controls": views.count_check(whole, "controls"),
        "control_kinds": len({*analysis.settings["control"]} - {Control.NONE}),
        "decodes": views.count_check(whole, "failed_decodes"),
        "drafted": len(analysis.drafts) > 0,
        "too_fast": times[times["campaign"] == analysis.name].filter(like="too_fast").sum(),
        "missed": mostly_missed(analysis.sensitivity),
        # What a round costs.
        "costs_measured": not passes.empty,
        "new_graphs": bool(analysis.pass_times["first_ms"].isna().any()),
        "widest_reads": _widest_reads(analysis.pass_times),
        "widest": widest,
        "widest_of_token": _ends_by_family(passes[passes["n_tokens"] == widest], "of_token"),
        "break_even": _break_even(analysis),
        "all_copy": all("checkpoint" in of_round for of_round in passes["parts"]),
        "predicted": {row["basis"]: row for row in records(predicted[predicted["suite"] == WHOLE])},
        "forced_gains": _gains_if_forced(analysis.levels),
        "commands": views.study_commands(analysis),
        "forced": [
            {"acceptance": ends(100 * at["acceptance_rate"]), "speedup": ends(at["speedup"])}
            for _, at in forced.groupby("forced_acceptance")
        ],
        # The answers: rows, labels by answer, and what gains on prompts that give no answer.
        "advised": records(advised),
        "answered": {
            answer.name.lower(): advised.loc[advised["answer"] == answer, "label"].tolist()
            for answer in Answer
        },
        "kinds": {name: records(rows) for name, rows in analysis.advice_kinds.groupby("target")},
        "best": best,
        "missing": advised[["not_compared", "sent_settings"]].sum(),
        "beside": views.beside_others(analysis),
        "experiment": experiment,
        "experiment_text": text_of_experiment(experiment),
        "states": views.clear_states(analysis),
        "gains_elsewhere": [row for row in best if "answer" not in row and row["speedup_low"] > 1],
        # The published study: its numbers as printed, and the verdicts on its claims.
        "printed": printed.set_index("what")["printed"].to_dict(),
        "verdicts": Counter(judged["verdict"]),
        "verdicts_flagged": Counter(judged.loc[judged["flagged"] > 0, "verdict"]),
        "verdicts_by_luck": (judged["comparisons"] > 0).sum() * (1 - campaign["confidence"]) / 2,
    }


def _gains_if_forced(levels: pd.DataFrame) -> dict[str, Any]:
    """Return what is above one by its whole interval where acceptance is forced, or {}."""
    gains = levels[(levels["factor"] == "forced_acceptance") & (levels["speedup_low"] > 1)]
    if gains.empty:
        return {}
    drafts = gains["draft_label"].unique().tolist()
    return {"settings": len(gains), "drafts": drafts, "speedups": ends(gains["speedup"])}


def _ends_by_family(rows: pd.DataFrame, column: str) -> dict[str, tuple[float, float]]:
    """Return the ends of a column, of `all` rows and of each family, where there are any."""
    groups = [("all", rows), *rows.groupby("family")]
    return {str(family): ends(members[column]) for family, members in groups if len(members)}


def _widest_reads(times: pd.DataFrame) -> dict[str, Any]:
    """Return the tokens of the widest passes whose share of reading is known, and its ends.

    Keys: n_tokens, share (in percent); none where no share is known.
    """
    known = times[times["bound_share"].notna()]
    if known.empty:
        return {}
    widest = known[known["n_tokens"] == known["n_tokens"].max()]
    return {"n_tokens": widest["n_tokens"].iloc[0], "share": ends(100 * widest["bound_share"])}


def _break_even(analysis: Analysis) -> dict[Any, int]:
    """Return how many settings are costed, never pay, may or may not pay, and are extrapolated."""
    settings = analysis.break_even.drop_duplicates([*PAIR, "gamma"])
    never, pays = settings["at_100_high"] < 1, settings["at_100_low"] > 1
    counted = settings.assign(settings=1, never=never, undecided=~never & ~pays)
    return counted[["settings", "never", "undecided", "extrapolated"]].sum().astype(int).to_dict()
