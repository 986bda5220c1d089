"""The tables of the page: the rows of the paper's, each whole, so that they can be sorted.

`paper/site/captions.yaml` has their titles, notes, and the tables of the analysis behind each.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from specmoe.analysis.advice import Answer
from specmoe.analysis.build import Analysis
from specmoe.analysis.controls import Control
from specmoe.analysis.cost_tables import WHOLE
from specmoe.audit.checks import ALL, CHECKS
from specmoe.page.columns import (
    Cell,
    Column,
    Kind,
    Row,
    count,
    deviated,
    interval,
    marked,
    measured,
    number,
    parameters,
    ratio,
    share,
    size,
    strong,
    text,
    written,
)
from specmoe.page.templates import DASH, plain
from specmoe.paper import latex
from specmoe.paper.tables import TABLES, Context, rows_of


class Table(NamedTuple):
    """A table as it is shown: its columns, its rows, and those that sorting leaves at the end."""

    columns: list[Column]
    rows: list[list[Cell]]
    totals: list[list[Cell]]


_TARGET, _DRAFT = text("Target", "label"), text("Draft", "draft_label")
# Where `label` names the draft too.
_TARGET_ALONE = text("Target", "target_label")
_SUITE, _TYPE = text("Suite", "suite"), text("Type", "type")
_WAY = text("Measured by", "way")
_GAMMA, _RUNS, _BLOCKS = count("γ", "gamma"), count("Runs", "runs"), count("Blocks", "blocks")
_RATE = number("tok/s", "tokens_per_second")
_RATE_SD = deviated("tok/s", "tokens_per_second")
_BASELINE = number("Without draft (tok/s)", "baseline_tokens_per_second")
_ACCEPTED = share("Accepted (%)", "acceptance_rate")
_TOKENS = number("Tokens a round", "mean_accepted_length", 2)
_SPEEDUP = measured("Speedup", "speedup")
_SPEEDUP_OVER_ANY = marked(_SPEEDUP, "†", lambda row: not row["paired"])
_MARKED = ratio("Marked / runs", "marked", "runs")
_ACTIVE = parameters("Active parameters", "parameters_active")
_TOTAL = parameters("All parameters", "parameters_total")
_PLACE = text("Place in the study", "source")
_PRINTED, _FROM_ROWS = ("Printed", "From its rows")

# What the audit calls each of its checks in the paper's table, in that order.
_CHECKED = ("Counts", "Draft time", "Bandwidth", "Decodes", "Tokens", "Repeats")

# What no true run can do, by the check of the audit that looks for it.
MEANINGS = {
    "accounting": "Give another number of tokens than its rounds and accepted tokens add up to.",
    "draft_time": "Take less time than its own passes and drafted tokens need at the speeds"
    " measured without a draft.",
    "bandwidth": "Read its weights faster than the machine's memory delivers them.",
    "failed_decodes": "Count as a measurement although the engine reported decodes that failed.",
    "losslessness": "Leave the text that the target writes alone, where the target's own"
    " probabilities are not a near tie.",
    "determinism": "Write other tokens than its repeats, although nothing is left to chance.",
    "controls": "Reject its own tokens when a target drafts for itself, or accept, or gain by,"
    " those of an unrelated draft.",
}

# What a control is called, and on which side of the acceptance that is due it must be.
CONTROLS = {
    Control.ITSELF: ("drafts for itself", "≥"),
    Control.UNRELATED: ("unrelated draft", "≤"),
}


def _experts(row: Row) -> Cell:
    if row["family"] != "MoE":
        return Cell(DASH)
    return ratio("Experts used / all", "experts_used", "experts").show(row)


def _due(row: Row) -> str:
    return f"{CONTROLS[row['control']][1]} {plain(latex.percent(row['due'], 0))}"


def _checked(head: str, place: int) -> Column:
    return written(head, lambda row: row["cells"][place])


def _compared(quantity: str, words: str) -> list[Column]:
    """Return the columns of a quantity as printed, from the study's rows, and measured here."""

    def one(head: str, place: int) -> Column:
        return written(f"{words}: {head}", lambda row: row["numbers"][quantity][place])

    return [one("printed", 0), one("its rows", 1), one("measured", 2)]


def _worst_cell(row: Row) -> Cell:
    target, draft = row["worst_target_label"], row["worst_draft_label"]
    return Cell(f"{row['worst_suite']}: {target}, {draft}, γ = {row['worst_gamma']}")


COLUMNS: dict[str, Sequence[Column]] = {
    "suites": [_SUITE, text("Experiment", "title"), _BLOCKS, _RUNS, count("Measured", "measured")],
    "models": [
        text("Model", "label"),
        text("Family", "family"),
        _ACTIVE,
        _TOTAL,
        Column("Experts used / all", _experts),
        _TYPE,
        size("File", "size_bytes"),
        text("Part", "role"),
    ],
    "hardware": [text("Condition", 0), text("Value", 1)],
    "baselines": [
        text("Model", "label"),
        _ACTIVE,
        _TOTAL,
        _RATE_SD,
        number("Reading prompts (tok/s)", "prompt_tokens_per_second"),
        _RUNS,
    ],
    "speculation": [
        _TARGET,
        _DRAFT,
        _GAMMA,
        _RATE_SD,
        strong(_SPEEDUP_OVER_ANY, lambda row: row["best"]),
        number("Unpaired", "speedup_unpaired", 2)._replace(
            when=lambda context: any(pd.notna(row["speedup_unpaired"]) for row in rows_of(context))
        ),
        _ACCEPTED,
        _TOKENS,
    ],
    "drafts": [_TARGET, _GAMMA],  # and some of each draft
    "prompts": [
        _TARGET,
        _DRAFT,
        _GAMMA,
        text("Text", "prompt_label"),
        _BASELINE,
        _RATE_SD,
        _SPEEDUP_OVER_ANY,
        _ACCEPTED,
    ],
    "prompt_lengths": [
        _TARGET,
        _DRAFT,
        _GAMMA,
        count("Prompt", "n_prompt"),
        _BASELINE,
        _RATE_SD,
        _SPEEDUP,
        _ACCEPTED,
    ],
    "temperatures": [
        _TARGET,
        _DRAFT,
        _GAMMA,
        number("Temperature", "temperature"),
        _ACCEPTED,
        _RATE,
        _SPEEDUP,
        count("Pairs", "pairs"),
        share("Same text (%)", "identical", 0),
        number("Distance", "distance", 2),
        number("Expected by chance", "distance_expected", 2),
        number("p (Holm)", "p_adjusted", 3),
        share("Detectable (%)", "detectable", 0),
    ],
    "types": [
        text("Network", "label"),
        _DRAFT,
        _GAMMA,
        size("A pass reads", "pass_bytes"),
        text("Target", "target_label"),
        _TYPE,
        _BASELINE,
        _SPEEDUP,
        measured("Over the first", "gain_ratio"),
    ],
    "controls": [
        _TARGET_ALONE,
        _DRAFT,
        _GAMMA,
        Column("Control", lambda row: Cell(CONTROLS[row["control"]][0]), Kind.TEXT),
        _ACCEPTED,
        written("Due (%)", _due),
        _SPEEDUP,
        written("Failed / runs", lambda row: row["counted"]),
    ],
    "spread": [
        _TARGET,
        _DRAFT,
        _GAMMA,
        text("At", "at")._replace(when=lambda context: bool(context["varied"])),
        _RUNS,
        _BLOCKS,
        share("Between blocks (%)", "block_sd"),
        share("Within (%)", "within_sd"),
        share("Rest (%)", "noise_sd"),
        share("± (%)", "half_width"),
        count("Repeats needed", "repeats_needed"),
    ],
    "advice": [
        _TARGET,
        strong(text("Answer", "answer"), lambda row: row["answer"] == Answer.ON),
        text("Because", "reason", Kind.PROSE),
        _DRAFT,
        _GAMMA,
        measured("Speedup", "speedup", ends="joint"),
        interval("For other prompts", "other_prompts"),
        ratio("Equal / settings", "equal", "settings"),
        size("Draft's file", "draft_bytes"),
        size("Added memory", "added_rss_bytes"),
        _BLOCKS,
        count("Repeats needed", "repeats_needed"),
        text("Controls", "controls"),
    ],
    "protocols": [
        text("Target", "label"),
        _WAY,
        _DRAFT,
        _GAMMA,
        share("Accepted (%)", "acceptance_rate", 2),
        _RATE,
        _SPEEDUP,
        number("Failed decodes a run", "decode_failures"),
        _MARKED,
    ],
    "identity": [
        _TARGET,
        _DRAFT,
        _RUNS,
        count("Identical", "identical"),
        count("Shortest common start", "common_prefix_min"),
    ],
    "verification": [
        _TARGET_ALONE,
        _DRAFT,
        count("Width", "width"),
        measured("Pass (steps)", "steps"),
        number("Pass (ms)", "ms", 2),
        Column("γ", lambda row: _GAMMA.show(row | {"gamma": row["gamma"] or None})),
        measured("Drafted token (steps)", "draft_steps"),
        measured("Replay (steps)", "replay_steps"),
        number("Experts", "experts"),
        size("Read", "read_bytes"),
        marked(share("Of bound (%)", "bound_share", 0), "†", lambda row: bool(row["in_cache"])),
    ],
    "prediction_errors": [
        marked(_SUITE, "†", lambda row: bool(row["imposed"])),
        count("Cells", "cells"),
        share("Error, median (%)", "median"),
        share("Error, worst (%)", "worst"),
        Column("Worst cell", _worst_cell, Kind.TEXT),
        number("Predicted / measured", "worst_ratio", 2),
        share("Study's equation one, median (%)", "median_1", 0),
        share("Study's equation two, median (%)", "median_2", 0),
    ],
    "break_even": [
        _TARGET_ALONE,
        _DRAFT,
        marked(_GAMMA, "*", lambda row: bool(row["extrapolated"])),
        measured("Nothing accepted", "floor"),
        measured("All accepted", "ceiling"),
        measured("Pays from (%)", "break_even", digits=0, scale=100),
        _SUITE,
        marked(_ACCEPTED, "†", lambda row: bool(pd.notna(row["imposed_acceptance"]))),
        _SPEEDUP,
    ],
    "findings": [
        Column("Check", lambda row: Cell(CHECKS[row["name"]].words), Kind.TEXT),
        Column("What no true run can do", lambda row: Cell(MEANINGS[row["name"]]), Kind.PROSE),
        ratio("Broken by / runs", "failed", "runs"),
        number("Nearest to its bound", "worst", 2),
    ],
    "audit": [
        _TARGET,
        _DRAFT,
        _GAMMA,
        _RUNS,
        count("Marked", "marked"),
        *(_checked(head, place) for place, head in enumerate(_CHECKED)),
    ],
    "ceilings": [
        _TARGET_ALONE,
        _DRAFT,
        _SUITE,
        _GAMMA,
        _ACCEPTED,
        _TOKENS,
        written(_PRINTED, lambda row: row["printed"])._replace(
            when=lambda context: bool(context["printed"])
        ),
        number("Speedup", "speedup", 2),
        number("Ceiling", "ceiling", 2),
        ratio("Above / runs", "above", "runs"),
    ],
    "reported": [_PLACE, count("Numbers", "cells"), count("Given by the rows", "equal")],
    "differences": [
        _PLACE,
        text("Number", "what"),
        written(_PRINTED, lambda row: row["printed"]),
        written(_FROM_ROWS, lambda row: row["recomputed"]),
    ],
    "claims": [
        text("Claim", "words", Kind.PROSE),
        _WAY._replace(when=lambda context: len(context["groups"]) > 1),
        marked(text("Verdict", "verdict"), "†", lambda row: bool(row["unpaired"])),
        text("What decides it", "why", Kind.PROSE),
        _MARKED,
        text("Place in the study", "place", Kind.PROSE),
    ],
    "method_notes": [
        text("Note", "note", Kind.PROSE),
        Column("Applies", lambda row: Cell("yes" if row["applies"] else "no"), Kind.TEXT),
        text("Finding", "finding", Kind.PROSE),
        text("From", "basis", Kind.PROSE),
    ],
    "comparison": [
        _TARGET,
        _DRAFT,
        written("γ", lambda row: row["gamma"]),
        *_compared("speedup", "Speedup"),
        *_compared("acceptance_percent", "Accepted (%)"),
    ],
    "compared_campaigns": [
        text("Campaign", "heading"),
        text("Processor", "host_chip"),
        text("GPU", "host_gpu"),
        text("Backend", "backend"),
        _WAY,
        text("Engine commit", "engine_commit"),
        Column("Random weights", lambda row: Cell("yes" if row["synthetic"] else "no"), Kind.TEXT),
        count("Tokens a run", "n_predict"),
        number("Temperature", "temperature"),
        count("Repeats", "repeats"),
        count("Settings", "settings"),
    ],
    "side_by_side": [  # and the speedup in each campaign
        _TARGET,
        marked(_DRAFT, "*", lambda row: row["other_files"]),
        _GAMMA,
        _SUITE,
        text("Prompts", "prompts"),
    ],
    "headline": [
        text("Headline number", "what", Kind.PROSE),
        written(_PRINTED, lambda row: row["numbers"][0]),
        written(_FROM_ROWS, lambda row: row["numbers"][1]),
        written("Measured here", lambda row: row["numbers"][2]),
    ],
}

# Of each draft, and of each campaign, where a table sets them side by side.
_OF_DRAFT = (number("Speedup", "speedup", 2), _ACCEPTED, _RATE)
_OF_CAMPAIGN = (marked(_SPEEDUP, "†", lambda row: row["marked"] > 0),)

# The column that names the line of all others, where a table has one.
_TOTALS = {"audit": ("target", ALL), "prediction_errors": ("suite", WHOLE)}


def page_tables(analysis: Analysis) -> dict[str, Table]:
    """Return the tables of the paper that the campaign has rows for.

    Its `comparison` is two here: cells, and the study's headline numbers.
    """
    contexts = {name: make(analysis) for name, make in TABLES.items()}
    compared = contexts["comparison"]
    contexts |= {
        "comparison": {"groups": compared["groups"]},
        "headline": {"rows": compared["rows"]},
    }
    tables = {name: _table(name, context) for name, context in contexts.items()}
    return {name: table for name, table in tables.items() if table.rows}


def _table(name: str, context: Context) -> Table:
    columns = [
        *COLUMNS[name],
        *_of_each(context.get("drafts", []), _OF_DRAFT),
        *_of_each(context.get("headings", []), _OF_CAMPAIGN),
    ]
    columns = [column for column in columns if column.when(context)]
    rows = rows_of(context)
    totals: list[Row] = []
    if "total" in context:
        totals = [{"suite": "", "title": "Total"} | context["total"]]
    if name in _TOTALS:
        column, whole = _TOTALS[name]
        totals = [row for row in rows if row[column] == whole]
        rows = [row for row in rows if row[column] != whole]
    return Table(columns, _cells(columns, rows), _cells(columns, totals))


def _cells(columns: Sequence[Column], rows: Sequence[Row]) -> list[list[Cell]]:
    return [[column.show(row) for column in columns] for row in rows]


def _of_each(names: Sequence[str], columns: Sequence[Column]) -> list[Column]:
    """Return the columns of each draft, or campaign, where a table sets them side by side."""

    def one(column: Column, place: int) -> Column:
        def show(row: Row) -> Cell:
            cell: Mapping[str, Any] | None = row["cells"][place]
            return Cell(DASH) if cell is None else column.show(cell)

        return column._replace(show=show, of=names[place])

    return [one(column, place) for place in range(len(names)) for column in columns]
