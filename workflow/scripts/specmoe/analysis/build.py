"""The tables of the analysis, from which the paper and the page are rendered."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import pandas as pd

from specmoe.analysis import cost_tables
from specmoe.analysis.advice import advise
from specmoe.analysis.ceilings import ceilings
from specmoe.analysis.compared_cells import (
    compare_categories,
    compare_methods,
    compare_temperatures,
    compare_types,
    text_shares,
)
from specmoe.analysis.concurrency import changes_with_concurrency, compare_loads, one_by_one
from specmoe.analysis.drafts import is_no_control, list_drafts, with_controls, without_controls
from specmoe.analysis.gamma_curves import gamma_curves
from specmoe.analysis.registry import Analysis
from specmoe.analysis.rounds import acceptance_by_position, accepted_lengths
from specmoe.analysis.spread import spread_of_cells
from specmoe.analysis.summaries import (
    CELL,
    named_prompts,
    summarise_baselines,
    summarise_cells,
    with_rates_alone,
)
from specmoe.analysis.twins import compare_twins, dense_twins, twin_passes
from specmoe.audit.checks import count_marked
from specmoe.audit.reading import readings_of
from specmoe.audit.tables import Audit
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, Stop
from specmoe.config.matrix import left_out_blocks
from specmoe.config.option_words import parts_of_setting
from specmoe.config.schema import Config, Statistics
from specmoe.config.study import is_family_of_study, is_of_study
from specmoe.models.card import ModelCard, Size, sizes_of_cards
from specmoe.runs.disturbed import count_excluded, undisturbed
from specmoe.runs.pass_times import seen_experts, undisturbed_passes
from specmoe.words import counted

T = TypeVar("T")

# What the analysis takes over from a model's card.
_OF_CARD = [
    *("parameters_total", "parameters_active", "size_bytes", "type"),
    *("experts", "experts_used", "sha256"),
]


def analyse(
    runs: pd.DataFrame,
    compared: pd.DataFrame,
    config: Config,
    cards: Mapping[str, ModelCard],
    host: Mapping[str, Any],
    audit: Audit,
    pass_times: pd.DataFrame,
    agreement: pd.DataFrame | None = None,
) -> Analysis:
    """Compute the tables of a campaign that need neither another campaign nor the study's text.

    `runs` is `schema.read_runs`'s frame, `compared` is `with_speedups` of those that count (see
    `runs.disturbed`): the others are in no estimate, and counted as `excluded` in tables of cells.
    `cards` are the models' and those of `by_setting`, `host` is the machine's description, `audit`
    the audit of `runs`, `pass_times` the table of `runs.pass_times`, `agreement` that of
    `runs.agreement`, if any.
    """
    statistics = config.statistics
    as_measured = runs
    runs, compared = (
        with_controls(frame, config.audit.unrelated_drafts, cards) for frame in (runs, compared)
    )
    every, all_runs, all_compared = runs, undisturbed(runs), compared
    runs, compared = one_by_one(all_runs), one_by_one(compared)
    usually_run = usual_runs(one_by_one(every), config)
    counts = usually_run["run"].isin(runs["run"])
    usual, excluded = usually_run[counts], usually_run[~counts]
    excluded = excluded[excluded["draft"] != NO_DRAFT]
    usually_compared = compared[compared["run"].isin(usual["run"])]
    of_cells = cell_tables(usually_compared, excluded, usually_run, statistics, config.prompt_label)
    cells = of_cells["cells"]
    loads = compare_loads(all_compared, all_runs, statistics)
    changes = changes_with_concurrency(all_compared, all_runs, statistics)
    of_target = "of_label", "of_target", config.target_label
    own_cells = without_controls(cells)
    drafts = list_drafts(every, config.label)
    own = without_controls(usual)
    drafting = own[own["draft"] != NO_DRAFT]
    of_draft = without_controls(usually_compared)
    tokens = runs.set_index("run")["tokens"]
    spread = spread_of_cells(compared, statistics)
    sizes = sizes_of_cards(cards, by_setting(seen_experts(pass_times), every))
    pass_times = undisturbed_passes(pass_times)
    advice = advise(usually_run, usually_compared, cells, spread, audit.audit, config, cards)
    at_usual = compared[compared["temperature"] == config.measurement.temperature]
    # All but controls of accepted drafts.
    drafted = at_usual[at_usual["imposed_acceptance"].notna() | is_no_control(at_usual)]
    dense_of = dense_twins(config, runs["target"].unique())
    fitted = cost_tables.fit_pairs(at_usual, runs, pass_times, statistics)
    predicted = cost_tables.predictions(fitted, drafted, statistics)
    readings = {} if agreement is None else readings_of(agreement)
    gammas = gamma_curves(of_draft, runs, readings, fitted, pass_times, statistics)
    return Analysis(
        of_cells | gammas,
        baselines=summarise_baselines(usual, statistics),
        categories=compare_categories(of_draft, statistics),
        spread=spread,
        temperatures=compare_temperatures(
            compared[compared["imposed_acceptance"].isna()], statistics
        ),
        types=_types(own_cells, usually_compared, config, sizes),
        concurrency=_with_labels(loads, *of_target),
        concurrency_changes=_with_labels(changes, *of_target),
        methods=compare_methods(own_cells, drafting, drafts),
        positions=acceptance_by_position(drafting),
        accepted_lengths=accepted_lengths(drafting),
        advice=advice.targets,
        advice_settings=advice.settings,
        verification=cost_tables.verification(
            fitted, sizes, host["memory_bandwidth_bytes_per_second"], config.audit.cache_bytes
        ),
        round_costs=cost_tables.round_costs(fitted),
        fitted_costs=cost_tables.fitted_costs(fitted),
        predictions=predicted,
        prediction_errors=cost_tables.prediction_errors(predicted),
        break_even=cost_tables.break_even(fitted, predicted),
        twins=compare_twins(drafted, tokens, dense_of, statistics),
        twin_passes=twin_passes(pass_times, dense_of, sizes, statistics),
        ceilings=ceilings(usually_compared, usual, sizes, config.audit),
        audit=audit.summary,
        marked=count_marked(audit.audit),
        power=audit.power,
        required_time=audit.required_time.assign(campaign=config.campaign.name),
        models=_models(every, config, cards),
        drafts=drafts,
        suites=_suites(as_measured, config),
        campaign=_campaign(as_measured, config, host),
    )


def usual_runs(runs: pd.DataFrame, config: Config) -> pd.DataFrame:
    """Return the runs whose acceptance is the draft's own, at the campaign's temperature.

    The others, and suites of several temperatures as a whole, have tables of their own.
    """
    own = runs["imposed_acceptance"].isna()
    one = runs.groupby("suite")["temperature"].transform("nunique").eq(1)
    return runs[own & one & runs["temperature"].eq(config.measurement.temperature)]


def cell_tables(
    compared: pd.DataFrame,
    excluded: pd.DataFrame,
    runs: pd.DataFrame,
    settings: Statistics,
    prompt_label: Callable[[str], str],
) -> dict[str, pd.DataFrame]:
    """Return the tables `cells`, `sweep` and `by_prompt`.

    `compared` is `with_speedups` of the `runs` that count, `excluded` are those with a draft that
    do not.
    """

    def summarise(members: pd.DataFrame, lost: pd.DataFrame, *by: str, **more: Any) -> pd.DataFrame:
        keys = [*CELL, *by]
        return count_excluded(summarise_cells(members, settings, keys, **more), lost, keys)

    of_length = compared["prompt"].str.startswith(PASSAGE_PREFIX).astype(bool)
    cells = with_rates_alone(summarise(compared, excluded, more=text_shares), compared)
    by_prompt = summarise(_by_text(compared[~of_length]), _by_text(excluded), "prompt")
    return {
        "cells": cells.assign(prompt_set=named_prompts(cells, runs)),
        "sweep": summarise(compared[of_length], excluded, "prompt", "n_prompt"),
        "by_prompt": _with_labels(by_prompt, "prompt_label", "prompt", prompt_label),
    }


def _by_text(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs in which all prompts of a workload are one."""
    workload = runs["workload"]
    return runs.assign(prompt=workload.where(workload.notna(), runs["prompt"]))


def _with_labels(
    frame: pd.DataFrame, column: str, of: str, label: Callable[[str], str]
) -> pd.DataFrame:
    return frame if frame.empty else frame.assign(**{column: frame[of].map(label)})


def required_times(analyses: Iterable[Analysis]) -> pd.DataFrame:
    """Return the campaigns' own rows of `required_time`, one campaign after the other."""
    frames = [one.required_time[one.required_time["campaign"] == one.name] for one in analyses]
    return pd.concat([frame for frame in frames if not frame.empty] or frames, ignore_index=True)


def by_setting(of_models: Mapping[str, T], runs: pd.DataFrame) -> dict[str, T]:
    """Return values of models by their ids, and by the targets with options that they are."""
    settings = runs[["target", "target_model"]].drop_duplicates().itertuples(index=False, name=None)
    named = {target: of_models[model] for target, model in settings if model in of_models}
    return {**of_models, **named}


def _models(runs: pd.DataFrame, config: Config, cards: Mapping[str, ModelCard]) -> pd.DataFrame:
    measured = {*runs["target"], *runs["target_model"], *runs["draft_model"].dropna()}
    return pd.DataFrame(
        [
            {
                "model": name,
                "label": config.target_label(name),
                "of_model": parts_of_setting(name)[0],
                "family": "moe" if card.experts else "dense",
                **{column: getattr(card, column) for column in _OF_CARD},
                "in_cache": card.size_bytes <= config.audit.cache_bytes,
                "constructed": config.is_constructed(parts_of_setting(name)[0]),
            }
            for name, card in cards.items()
            if name in measured
        ]
    )


def _types(
    cells: pd.DataFrame, compared: pd.DataFrame, config: Config, sizes: Mapping[str, Size]
) -> pd.DataFrame:
    labels = {network: config.label(network) for network in config.models}
    networks = {}
    for setting in sizes:
        model, of_options = parts_of_setting(setting)
        network = config.network(model)
        words = config.option_setting(of_options).label
        networks[setting] = ", ".join([labels.get(network, network), *([words] if words else [])])
    return compare_types(
        cells,
        compared,
        networks,
        {model: size.pass_bytes(1) for model, size in sizes.items()},
        config.statistics,
    )


def _suites(runs: pd.DataFrame, config: Config) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "suite": name,
                "title": suite.title,
                "runs": len(members),
                "blocks": members["block"].nunique(),
                "measured": len(members),
            }
            for name, suite in config.selected_suites.items()
            for members in [runs[runs["suite"] == name]]
        ]
    )


def _campaign(runs: pd.DataFrame, config: Config, host: Mapping[str, Any]) -> pd.DataFrame:
    first = runs.iloc[0]
    return pd.DataFrame(
        [
            {
                "campaign": config.campaign.name,
                "source": config.campaign.source,
                "of_study": is_of_study(runs["target_model"]),
                # What n_prompt counts: the study's own rows have words, engines count tokens.
                "length_unit": "words" if config.campaign.source == "published" else "tokens",
                "synthetic": all(map(config.is_synthetic, config.measured_models)),
                "other_models": not any(
                    is_family_of_study(entry.family)
                    for name in config.measured_models
                    for entry in config.lineage(name).values()
                ),
                # A model of a family has the shape of the published one: its card was checked.
                "true_shape": all(
                    config.models[name].kind == "synthetic" and config.models[name].family
                    for name in config.measured_models
                ),
                # A campaign may have several; the rows of each suite say which.
                **{
                    key: ", ".join(runs[key].unique())
                    for key in ("protocol", "engine", "engine_commit", "backend")
                },
                "engine_options": config.option_setting("").text,
                "n_predict": first["n_predict"],
                "stops_at_end": bool(runs["stop"].eq(Stop.EOS).any()),
                "temperature": config.measurement.temperature,
                "repeats": config.measurement.repeats,
                "confidence": config.statistics.confidence,
                "precision": config.statistics.precision,
                "itself_acceptance": config.audit.self_acceptance,
                "unrelated_acceptance": config.audit.unrelated_acceptance,
                "started_at": runs["started_at"].min(),
                "ended_at": runs["started_at"].max(),
                "load_average_max": float(runs["load_average"].max()),
                "left_out": ", ".join(config.campaign.left_out),
                "left_out_runs": sum(block.runs for block in left_out_blocks(config)),
                **_care(runs),
                "session_sd": config.statistics.session_sd,
                "machines": runs["host"].nunique(),
                **{f"host_{key}": value for key, value in host.items() if key != "machines"},
            }
        ]
    )


def _care(runs: pd.DataFrame) -> dict[str, Any]:
    """Return how runs and their baselines shared the machine; null where it was not recorded."""
    watched = runs[runs["measured_again"].notna()]
    excluded = runs[~runs["run"].isin(undisturbed(runs)["run"])]
    known = len(watched) > 0
    blocks = runs.drop_duplicates("block")["arrangement"].value_counts()
    words = {"together": "live together", "in_turn": "one after the other"}
    return {
        "arrangement": ", ".join(
            f"{words[str(kind)]}: {counted(count, 'block')}" for kind, count in blocks.items()
        ),
        # How many runs were measured again, and how many were disturbed at the last attempt too;
        # those and the runs compared with them are in no estimate.
        "measured_again": int(watched["measured_again"].gt(0).sum()) if known else None,
        "taken_away": int(watched["taken_away"].notna().sum()) if known else None,
        "excluded": len(excluded) if known else None,
    }
