"""The analysis as tables and figures look at it: joined with the models, named and ordered.

Nothing here computes a number; rows are chosen, put in order, and given their labels. Tables of
cells have the columns that `describe_cells` adds; the other functions name only their own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from specmoe.analysis.advice import ADVICE_COLUMNS, SETTING_COLUMNS
from specmoe.analysis.build import CARD_COLUMNS, Analysis
from specmoe.analysis.categories import ENDING_COLUMNS, GAP_COLUMNS
from specmoe.analysis.ceilings import CEILINGS
from specmoe.analysis.concurrency import CHANGE_COLUMNS
from specmoe.analysis.concurrency import COLUMNS as LOAD_COLUMNS
from specmoe.analysis.controls import Control
from specmoe.analysis.cost_tables import PAIR
from specmoe.analysis.imposed_profiles import COLUMNS as PROFILE_COLUMNS
from specmoe.analysis.latency import COLUMNS as LATENCY_COLUMNS
from specmoe.analysis.latency import CURVE_COLUMNS, Time
from specmoe.analysis.machines import COLUMNS as MACHINE_COLUMNS
from specmoe.analysis.summaries import CELL
from specmoe.analysis.texts import TEXT_COLUMNS
from specmoe.analysis.twins import COLUMNS as TWIN_COLUMNS
from specmoe.analysis.twins import PASS_COLUMNS as TWIN_PASS_COLUMNS
from specmoe.audit.checks import ALL
from specmoe.config.block import NO_DRAFT, WAY
from specmoe.config.engines import without_digits
from specmoe.config.methods import METHODS, Method, methods_of
from specmoe.errors import SchemaError

Record = dict[str, Any]
"""A row of a frame, by column."""

SIDE_BY_SIDE = [
    *("heading", "campaign", *WAY, "target_label", "draft_label", "gamma", "prompts", "suite"),
    *("campaigns", "same_files", "runs", "blocks", "paired", "marked", "acceptance_rate"),
    *("tokens_per_second", "baseline_tokens_per_second"),
    *("speedup", "speedup_low", "speedup_high"),
]
COMPARED_CAMPAIGNS = [
    *("heading", "campaign", *WAY, "engine_commit", "backend", "host_chip", "host_gpu"),
    *("synthetic", "n_predict", "temperature", "repeats", "settings", "engine_options"),
]
MERGED = [
    *(*WAY, *CELL, "campaign", "machine", "runs", "blocks", "acceptance_rate"),
    *("tokens_per_second", "baseline_tokens_per_second"),
    *("speedup", "speedup_low", "speedup_high"),
    *("break_even", "break_even_low", "break_even_high", "joules_per_token"),
]
_PROTOCOL_WORDS = {"paired": "llama-server", "published": "the study's commands"}

_WAY, _PAIR = " ".join(WAY), " ".join(PAIR)
_CELL = f"""
    {_WAY} suite target draft method draft_model gamma runs paired
    tokens_per_second tokens_per_second_sd
    acceptance_rate acceptance_rate_mean mean_accepted_length replays_per_round
    tokens_per_round rounds_per_run round_ms speedup speedup_low speedup_high
    first_token_ratio first_token_ratio_low first_token_ratio_high
    end_to_end end_to_end_low end_to_end_high speedup_unpaired common_prefix_min identical
    decode_failures baseline_tokens_per_second
"""
_PAIRS = "excluded pairs"  # see `runs.disturbed.count_excluded`
# What is shown of each table.
_COLUMNS = {
    "baselines": """
        target tokens_per_second tokens_per_second_sd tokens_per_second_low tokens_per_second_high
        prompt_tokens_per_second runs
    """,
    "cells": f"{_CELL} control blocks prompt_set alone_tokens_per_second"
    f" alone_tokens_per_second_sd {' '.join(TEXT_COLUMNS)} {_PAIRS}",
    "sweep": f"{_CELL} control prompt n_prompt {_PAIRS}",
    "by_prompt": f"{_CELL} control prompt prompt_label {_PAIRS}",
    "categories": f"{_CELL} workload category prompts blocks",
    "category_gaps": " ".join(GAP_COLUMNS),
    "endings": " ".join(ENDING_COLUMNS),
    "temperatures": f"""
        {_CELL} temperature pairs distance distance_expected p_value p_adjusted detectable
    """,
    "types": f"{_CELL} control network pass_bytes gain_ratio gain_ratio_low gain_ratio_high",
    "methods": f"{_CELL} control words setting drafting_share best {_PAIRS}",
    "concurrency": " ".join([*LOAD_COLUMNS, "of_label"]),
    "concurrency_changes": " ".join([*CHANGE_COLUMNS, "of_label"]),
    "machines": " ".join(MACHINE_COLUMNS),
    "merged": " ".join(MERGED),
    "energy": f"""
        {_WAY} suite target draft gamma control energy_source runs blocks joules_per_token
        baseline_joules_per_token energy_ratio energy_ratio_low energy_ratio_high idle_w idle_share
    """,
    "latency": " ".join(LATENCY_COLUMNS),
    "token_gaps": " ".join(CURVE_COLUMNS),
    "positions": f"{_WAY} suite target draft gamma position tried accepted conditional joint",
    "accepted_lengths": f"{_WAY} suite target draft gamma rounds least most counted share",
    "chains": f"""
        {_WAY} suite target draft gamma place words engine_type rounds drafts share drafted
        accepted acceptance_rate
    """,
    "models": " ".join(
        ["model", "label", "of_model", "family", *CARD_COLUMNS, "in_cache", "constructed"]
    ),
    "drafts": "draft label drafter words setting method draft_model",
    "suites": "suite title runs blocks measured",
    "spread": """
        cell comparison suite target draft gamma acceptance_rate runs blocks block_sd
        within_sd noise_sd half_width repeats_needed
    """,
    "advice": " ".join(ADVICE_COLUMNS),
    "advice_settings": " ".join(SETTING_COLUMNS),
    "verification": f"""
        {_PAIR} width timed steps steps_low steps_high ms ms_low ms_high target_efficiency experts
        experts_even experts_seen read_bytes bound_ms bound_share in_cache
    """,
    "round_costs": f"""
        {_PAIR} gamma draft_steps draft_steps_low draft_steps_high draft_ms round_steps
        round_steps_low round_steps_high reread_steps reread_steps_low reread_steps_high rest_steps
        rest_steps_low rest_steps_high replay_steps replay_steps_low replay_steps_high replay_ms
    """,
    "predictions": f"""
        {_PAIR} suite gamma imposed_acceptance acceptance_rate speedup speedup_low speedup_high
        predicted predicted_low predicted_high ratio tokens_per_round utility equation_1
        equation_1_per_token equation_2 extrapolated
    """,
    "prediction_errors": """
        suite imposed cells median worst inside median_1 median_1_per_token median_2 worst_suite
        worst_target worst_draft worst_gamma worst_ratio
    """,
    "break_even": f"""
        {_PAIR} gamma floor floor_low floor_high ceiling ceiling_low ceiling_high break_even
        break_even_low break_even_high suite acceptance_rate speedup speedup_low speedup_high
        extrapolated imposed_acceptance
    """,
    "profiles": " ".join(PROFILE_COLUMNS),
    "twins": " ".join(TWIN_COLUMNS),
    "twin_passes": " ".join(TWIN_PASS_COLUMNS),
    "ceilings": " ".join(CEILINGS),
    "audit": f"{_WAY} target draft gamma runs marked impossible implausible",
    "power": "forged factor runs unbounded impossible implausible",
    "marked": f"{_WAY} suite target draft gamma prompt runs marked impossible",
    "claims": f"words place {_WAY} verdict why comparisons runs marked unpaired",
    "required_time": "campaign family decode_ms required_ms too_fast too_fast_alone",
    "method_notes": "note applies finding basis",
    "reported": "what source printed recomputed digits equal because",
    "side_by_side": " ".join(SIDE_BY_SIDE),
    "compared_campaigns": " ".join(COMPARED_CAMPAIGNS),
    "comparison": "what source relation printed digits recomputed measured",
    "taxonomy": """
        name paper cited draft verification in_engine needs hybrids remark measured
        paper_unverified verification_unverified
    """,
}

# Of the last analysis, as tables and claims ask for the same again and again; nobody changes it.
_kept = lru_cache(maxsize=1)


def records(frame: pd.DataFrame) -> list[Record]:
    """Return the rows of a frame, each as a dict from column to value."""
    # As `to_dict` does, whose rows take twice the time.
    columns = [
        [None if value is pd.NA else value for value in column.tolist()]
        for _, column in frame.items()
    ]
    names = [*map(str, frame.columns)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def table(analysis: Analysis, name: str) -> pd.DataFrame:
    """Return a table of the analysis, with every column that is shown of it.

    A campaign without speculation has tables without rows, and those may lack columns. Raises
    SchemaError when a table with rows lacks one.
    """
    frame: pd.DataFrame = getattr(analysis, name)
    lacking = [column for column in _COLUMNS[name].split() if column not in frame.columns]
    if frame.empty:
        return frame.reindex(columns=[*frame.columns, *lacking]).astype(object)
    if lacking:
        raise SchemaError(
            f"table {name!r} of campaign {analysis.name!r} has no column {lacking[0]!r};"
            " render that campaign again"
        )
    return frame


def ordered_models(analysis: Analysis) -> pd.DataFrame:
    """Return the models in the order of all tables and figures: MoE first, then by size.

    A target with options of the engine is a row of its own, after its model's.
    """
    frame = table(analysis, "models")
    keys = ["family", "parameters_total", "size_bytes", "model"]
    ascending = [False, True, True, True]  # "moe" is after "dense" in the alphabet
    return frame.sort_values(keys, ascending=ascending, ignore_index=True)


def ordered_files(analysis: Analysis) -> pd.DataFrame:
    """Return the models in the order of `ordered_models`, once whatever the engine's options."""
    frame = ordered_models(analysis)
    return frame[frame["model"] == frame["of_model"]].reset_index(drop=True)


def ordered_baselines(analysis: Analysis) -> pd.DataFrame:
    """Return the baselines with their models' columns (`label`, `family`, ...), in order."""
    return _with_targets(table(analysis, "baselines"), analysis).sort_values(
        "target_rank", ignore_index=True
    )


def whole_audit(analysis: Analysis) -> dict[str, Any]:
    """Return the audit's counts of all runs, see `checks.summarise_audit`; empty without audit."""
    audit = table(analysis, "audit")
    rows = audit[audit["target"] == ALL].to_dict("records")
    return {str(key): value for key, value in rows[0].items()} if rows else {}


def count_check(counts: Mapping[str, Any], check: str) -> dict[str, Any]:
    """Return what a row of `checks.summarise_audit` counts of a check.

    Keys: failed, runs (to which it applies), worst (the largest ratio to a bound).
    """
    failed, passed = (counts.get(f"{check}_{word}", 0) for word in ("failed", "passed"))
    known = 0 if pd.isna(failed) or pd.isna(passed) else int(failed + passed)
    return {
        "failed": int(failed) if known else 0,
        "runs": known,
        "worst": counts.get(f"{check}_worst"),
    }


def ordered_audit(analysis: Analysis) -> pd.DataFrame:
    """Return the audit's counts in order: of each target the runs without a draft come first.

    The line of the whole campaign comes last.
    """
    frame = table(analysis, "audit")
    models = enumerate(ordered_models(analysis)["model"])
    frame = frame.assign(
        whole=frame["target"] == ALL,
        target_rank=frame["target"].map({model: rank for rank, model in models}),
        draft_rank=frame["draft"].map(draft_ranks(analysis) | {NO_DRAFT: -1}),
    )
    return frame.sort_values(
        ["whole", *WAY, "target_rank", "draft_rank", "gamma"], ignore_index=True
    )


@_kept
def usual_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells but for controls."""
    return describe_cells(_usual(table(analysis, "cells")), analysis)


@_kept
def text_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of suites that send whole texts, but for controls."""
    return describe_cells(_of_texts(analysis), analysis)


def prompt_sets(analysis: Analysis) -> list[tuple[int, list[str]]]:
    """Return each set of prompts of `text_cells` by its labels, after the number of its cells."""
    cells, by_prompt = _of_texts(analysis), table(analysis, "by_prompt")
    labels = {suite: (*own.unique(),) for suite, own in by_prompt.groupby("suite")["prompt_label"]}
    sets = Counter(labels[suite] for suite in cells["suite"] if suite in labels)
    return [(count, [*named]) for named, count in sets.items()]


def _of_texts(analysis: Analysis) -> pd.DataFrame:
    cells, by_length = _usual(table(analysis, "cells")), table(analysis, "sweep")
    return cells[~cells["suite"].isin(by_length["suite"])]


def cells_by_draft(analysis: Analysis) -> pd.DataFrame:
    """Return the text cells but for targets that their suite measured with several methods.

    Those have many settings, and tables and figures of their own.
    """
    return describe_cells(_by_draft(analysis), analysis)


def rates_by_draft(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of `cells_by_draft`, with a series for each suite of a target.

    Rates of two suites may be over other prompts.
    """
    return describe_cells(_by_draft(analysis), analysis, once=["target"])


def _by_draft(analysis: Analysis) -> pd.DataFrame:
    cells, compared = _of_texts(analysis), table(analysis, "methods")
    side_by_side = pd.MultiIndex.from_frame(compared[["suite", "target"]])
    inside = pd.MultiIndex.from_frame(cells[["suite", "target"]]).isin(side_by_side)
    return cells[~inside]


def prompt_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells by text but for controls."""
    cells = describe_cells(_usual(table(analysis, "by_prompt")), analysis)
    keys = ["target_rank", "suite", "draft_rank", "gamma", "prompt"]
    return cells.sort_values(keys, ignore_index=True)


def length_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells by prompt length but for controls.

    Every suite has baselines of its own, so a target of several suites has a series for each,
    whatever its drafts and γ.
    """
    cells = describe_cells(_usual(table(analysis, "sweep")), analysis, once=["target"])
    return cells.sort_values(
        ["target_rank", "suite", "draft_rank", "gamma", "n_prompt"], ignore_index=True
    )


def temperature_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells by temperature."""
    return describe_cells(table(analysis, "temperatures"), analysis).sort_values(
        ["target_rank", "suite", "draft_rank", "gamma", "temperature"], ignore_index=True
    )


def cells_by_type(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of networks in files of several types.

    `series` has one suite, network, draft and γ, in order of the bytes that a pass reads, and
    `label` names it.
    """
    cells = describe_cells(table(analysis, "types"), analysis)
    several = cells["suite"].nunique() > 1
    where = " (suite " + cells["suite"] + ")" if several else ""
    setting = cells["network"] + where
    return cells.assign(
        label=setting,
        series=setting + " " + cells["draft"] + " " + cells["gamma"].astype(str),
    ).sort_values(["network", "suite", "draft_rank", "gamma", "pass_bytes"], ignore_index=True)


def energy_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells with their energy, but for controls."""
    return describe_cells(_usual(table(analysis, "energy")), analysis)


def machine_cells(analysis: Analysis) -> pd.DataFrame:
    """Return what each machine of several measured, the machines of a cell together.

    Added: see `_of_machines`.
    """
    return _of_machines(table(analysis, "machines"), analysis)


def merged_cells(analysis: Analysis) -> pd.DataFrame:
    """Return what the machines of merged campaigns measured, those of a cell together.

    Added: see `_of_machines`.
    """
    return _of_machines(table(analysis, "merged"), analysis)


def _of_machines(cells: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return cells by machine, in order.

    Added: setting, words for what drafts; series, the target and its suite; cell, both.
    """
    cells = describe_cells(cells, analysis)
    series = cells["target"] + " " + cells["suite"]
    setting = cells["draft_label"] + ", γ = " + cells["gamma"].astype(str)
    return cells.assign(setting=setting, series=series, cell=series + " " + setting).sort_values(
        ["target_rank", "suite", "draft_rank", "gamma", "machine"], ignore_index=True
    )


def latency_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the quantiles of each time that one waits in a cell."""
    times = {time: rank for rank, time in enumerate(Time)}
    cells = describe_cells(table(analysis, "latency"), analysis)
    return cells.assign(time_rank=cells["time"].map(times)).sort_values(
        ["target_rank", "suite", "draft_rank", "gamma", "time_rank"], ignore_index=True
    )


def profile_cells(analysis: Analysis) -> pd.DataFrame:
    """Return what pairs gain with each profile that was imposed."""
    cells = describe_cells(table(analysis, "profiles"), analysis)
    return cells.sort_values(
        ["target_rank", "suite", "draft_rank", "gamma", "profile"], ignore_index=True
    )


def token_gap_curves(analysis: Analysis) -> pd.DataFrame:
    """Return the curves of the time between tokens; those of targets alone come first."""
    curves = describe_cells(table(analysis, "token_gaps"), analysis)
    return curves.assign(
        draft_rank=curves["draft_rank"].where(curves["draft"] != NO_DRAFT, -1)
    ).sort_values(["target_rank", "suite", "draft_rank", "gamma", "share"], ignore_index=True)


def cells_by_way(analysis: Analysis) -> pd.DataFrame:
    """Return the cells that were measured in several ways: by two protocols, or two engines.

    Added: `way`, words for protocol and engine, and `marked`, the runs that the audit marks; in the
    campaign's order.
    """
    cells = describe_cells(table(analysis, "cells"), analysis)
    cells["way"] = way_words(cells)
    key = ["target", "draft", "gamma"]
    cells = cells[cells.groupby(key)["way"].transform("nunique").gt(1)]
    marked = table(analysis, "audit")[[*WAY, *key, "marked"]]
    cells = cells.merge(marked, how="left", on=[*WAY, *key])
    suites = {suite: rank for rank, suite in enumerate(table(analysis, "suites")["suite"])}
    return cells.assign(suite_rank=cells["suite"].map(suites)).sort_values(
        ["target_rank", "draft_rank", "suite_rank", "gamma"], ignore_index=True
    )


def control_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the controls, those that should be accepted first.

    Added: `due` (the acceptance rate that they must reach, or not exceed), and controls_passed and
    controls_failed (runs; null where the audit has not counted them).
    """
    cells = table(analysis, "cells")
    cells = describe_cells(cells[cells["control"] != Control.NONE], analysis)
    keys, counted = [*WAY, "target", "draft", "gamma"], ["controls_passed", "controls_failed"]
    audit = table(analysis, "audit").reindex(columns=[*keys, *counted])
    campaign = analysis.campaign.iloc[0]
    due = {kind: campaign[f"{kind}_acceptance"] for kind in Control if kind != Control.NONE}
    cells = cells.assign(due=cells["control"].map(due)).merge(audit, how="left", on=keys)
    return cells.sort_values(["control", "target_rank", "suite", "gamma"], ignore_index=True)


def describe_cells(
    cells: pd.DataFrame, analysis: Analysis, once: Sequence[str] = ("target", "draft", "gamma")
) -> pd.DataFrame:
    """Return cells in order, with the columns of their target and words for both models.

    Added: label (also as target_label), family and sizes of the target, draft_label, and `series`,
    which tells apart what a figure draws as one line: the target, and the suite too where two
    suites of a campaign measured the same of what a figure can show `once`. `label` then names the
    suite.
    """
    cells = _with_targets(cells, analysis)
    cells = cells.assign(
        target_label=cells["label"],
        draft_label=cells["draft"].map(draft_labels(analysis)).astype(object),
        draft_rank=cells["draft"].map(draft_ranks(analysis)),
    )
    suites = cells.groupby([*once])["suite"].transform("nunique")
    shared = cells["target"].isin(cells.loc[suites.gt(1), "target"])
    cells["series"] = cells["target"].where(~shared, cells["target"] + " " + cells["suite"])
    cells["label"] = cells["label"].where(
        ~shared, cells["label"] + " (suite " + cells["suite"] + ")"
    )
    return cells.sort_values(["target_rank", "suite", "draft_rank", "gamma"], ignore_index=True)


def advised_targets(analysis: Analysis) -> pd.DataFrame:
    """Return the advice for targets measured with a draft, with their columns.

    Added: draft_label, and by_model (whether what drafts is a draft model).
    """
    frame = table(analysis, "advice")
    some = frame[["settings", "set_aside", "idle", "none_left"]].sum(axis="columns") > 0
    frame = _with_targets(frame[some], analysis)
    return frame.assign(
        draft_label=frame["draft"].map(draft_labels(analysis)),
        by_model=frame["method"] == METHODS[Method.DRAFT].engine,
    ).sort_values("target_rank", ignore_index=True)


def spread_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the cells of the table of spread.

    Added: `at`, the acceptance that the engine was made to reach, as realised, or the temperature:
    what a cell's id holds beyond suite, target, draft and γ (`spread.cell_id`).
    """
    cells = describe_cells(table(analysis, "spread"), analysis)
    at = [
        ", ".join(_at(part, rate) for part in cell.split("/")[len(CELL) :])
        for cell, rate in zip(cells["cell"], cells["acceptance_rate"], strict=True)
    ]
    keys = ["target_rank", "suite", "draft_rank", "gamma", "cell"]
    return cells.assign(at=at).sort_values(keys, ignore_index=True)


def _at(part: str, acceptance_rate: float) -> str:
    return f"{100 * acceptance_rate:.0f} %" if part[0] == "a" else f"T = {float(part[1:]):g}"


def drawn_side_by_side(analysis: Analysis) -> pd.DataFrame:
    """Return the cells that the figure of campaigns side by side shows, with a column `panel`.

    A panel is a target and its prompts. Shown are those that several campaigns measured, or all
    where there are none; nothing where a single campaign measured any.
    """
    cells = table(analysis, "side_by_side")
    if cells["campaign"].nunique() < 2:
        return cells.iloc[:0].assign(panel=None)
    cells = cells.assign(
        panel=cells.groupby(["target_label", "prompts", "suite"], sort=False).ngroup()
    )
    shared = cells[cells.groupby("panel")["campaign"].transform("nunique") > 1]
    return cells if shared.empty else shared


def judged_claims(analysis: Analysis) -> pd.DataFrame:
    """Return the study's claims with their verdicts, and `way`, words for protocol and engine."""
    frame = table(analysis, "claims")
    return frame.assign(way=way_words(frame))


def _usual(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[cells["control"] == Control.NONE]


def way_words(frame: pd.DataFrame) -> "pd.Series[str]":
    """Return words for the protocol and engine of each row."""
    return frame["protocol"].map(_PROTOCOL_WORDS) + ", " + frame["engine"].map(without_digits)


@_kept
def draft_labels(analysis: Analysis) -> "pd.Series[str]":
    """Return the label of each setting of what drafts."""
    return table(analysis, "drafts").set_index("draft")["label"].astype(object)


@_kept
def draft_ranks(analysis: Analysis) -> dict[str, int]:
    """Return the order of what drafts: by method, chains last; draft models in the order of models.

    Settings of one method stand in the order of their labels.
    """
    models = {model: rank for rank, model in enumerate(ordered_models(analysis)["model"])}
    order = list(METHODS)

    def rank(row: Record) -> tuple[Any, ...]:
        methods = methods_of(row["method"])
        places = [order.index(method) for method in methods]
        return len(methods) > 1, places, models.get(row["draft_model"], len(models)), row["label"]

    ordered = sorted(records(table(analysis, "drafts")), key=rank)
    return {row["draft"]: place for place, row in enumerate(ordered)}


@_kept
def _ranked_models(analysis: Analysis) -> pd.DataFrame:
    models = ordered_models(analysis)
    return models.assign(target_rank=range(len(models)))


def _with_targets(frame: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    targets = _ranked_models(analysis)
    merged = frame.merge(targets, how="left", left_on="target", right_on="model", validate="m:1")
    return merged.drop(columns="model")
