"""Computation of all tables of an analysis."""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis import cost_tables, summaries, views
from specmoe.analysis.advice import advice_from
from specmoe.analysis.gamma_curves import gamma_curves
from specmoe.analysis.registry import TABLES, Analysis, records
from specmoe.analysis.state import baselines_beside, state
from specmoe.analysis.summaries import SETTING, is_no_control, usual
from specmoe.analysis.upcycled_pairs import compare_pairs, compare_passes, steps_to
from specmoe.audit.checks import count_flagged
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.audit.limits import LIMITS
from specmoe.audit.report import Audit
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.progress import Progress
from specmoe.config.block import NO_DRAFT, Stop
from specmoe.config.matrix import excluded_blocks
from specmoe.config.methods import PARAMETERS, Method, draft_label, methods_of
from specmoe.config.models import UpcycleModel
from specmoe.config.schema import Config, Statistics
from specmoe.files import read_record
from specmoe.models.info import ModelInfo, load_infos
from specmoe.models.reported import accepted_elsewhere
from specmoe.runs.other_tables import read_agreement, read_pass_times, sizes_of, undisturbed_passes
from specmoe.runs.schema import read_runs, undisturbed

# What the table of models has of their infos.
_OF_MODEL = ["parameters_total", "parameters_active", "size_bytes", "type"]
_OF_MODEL += ["experts", "experts_used", "sha256"]


def analysis_of_campaign(campaign: LoadedCampaign, others: Sequence[Analysis]) -> Analysis:
    """Compute all tables of a campaign but the study's, with those that compare it with others.

    Runs that do not count (see `runs.schema`) are in no estimate, and counted as `excluded` in
    tables of settings.
    """
    config, data = campaign.config, campaign.places.data
    runs = summaries.with_conditions(read_runs(data / "runs.parquet"))
    infos, machine = load_infos(data / "models.json"), read_record(data / "machine.json")
    audit = Audit.read(campaign.places.folder / "audit")
    pass_times = read_pass_times(*campaign.table("pass_times"))
    scores = scores_by_run(read_agreement(*campaign.table("agreement")))
    stages = Progress(campaign).ended.get("settings", [])
    statistics = config.statistics
    bandwidth: float | None = machine["memory_bandwidth_bytes_per_second"]
    counted = undisturbed(runs)
    pairs = summaries.make_pairs(runs, config.audit.unrelated_drafts, infos, config.workloads)
    compared = pairs[pairs["counts"]]
    usual_pairs = usual(compared)
    # Pairs of drafts that one would use, which controls are not.
    drafting = usual_pairs[is_no_control(usual_pairs)]
    # Forced acceptance makes any draft model one, and its levels share the blocks of the other
    # settings.
    costed = compared[compared["forced_acceptance"].notna() | compared.index.isin(drafting.index)]
    # Passes are timed with the campaign's options, and tell nothing of others.
    options = shlex.join(config.measurement.engine_args)
    both = compared[["engine_options", "baseline_options"]].fillna(options)
    timed = both.index[both.isin([options]).all(axis="columns")]
    tables = setting_tables(pairs, statistics)
    sizes = sizes_of(infos, pass_times)
    pass_times = undisturbed_passes(pass_times)
    tokens = summaries.token_times(usual(counted[counted["engine_options"] == options]))
    beside = baselines_beside(usual_pairs, statistics)
    given = tables["settings"], audit.audit
    tables |= advice_from(usual(runs), pairs, *given, config, infos, stages)
    failed: Any = beside.groupby("target")["failed"].sum() if len(beside) else {}
    tables["advice"]["beside_failed"] = tables["advice"]["target"].map(failed).astype("Int64")
    drafts = list_drafts(runs, config.label)
    tables["advice"] = _beside_reported(tables["advice"], infos, drafts)
    # Stages alone use what else is known of settings.
    tables["advice_settings"] = tables["advice_settings"][[*TABLES["advice_settings"].columns]]
    models = config.models.items()
    # Both have the same type, because upcycling copies bytes.
    upcycled = {name: made for name, made in models if isinstance(made, UpcycleModel)}
    dense_of = {name: made.source for name, made in upcycled.items()}
    steps = steps_to(upcycled, {*costed["target"]})
    alike = costed[costed.index.isin(timed)]
    fitted = cost_tables.fit_pairs(alike, pass_times, statistics)
    predicted = cost_tables.predictions(fitted, alike, statistics)
    alike = drafting[drafting.index.isin(timed)]
    curves = gamma_curves(alike, counted, scores, fitted, pass_times, statistics)
    analysis = Analysis(
        tables,
        baselines_beside=beside,
        baselines=summaries.summarise_baselines(usual(counted), statistics),
        categories=summaries.summarise_categories(drafting, statistics),
        positions=summaries.acceptance_by_position(drafting),
        verification=cost_tables.verification(fitted, statistics),
        fitted_costs=cost_tables.fitted_costs(fitted),
        predictions=predicted,
        prediction_errors=cost_tables.prediction_errors(predicted, curves),
        break_even=_beside_reported(cost_tables.break_even(fitted, predicted), infos, drafts),
        gamma_curves=curves,
        state=state(usual_pairs, tables["advice"], tables["advice_settings"], statistics),
        upcycled_pairs=compare_pairs(costed, dense_of, steps, statistics),
        pass_times=compare_passes(pass_times, tokens, dense_of, sizes, bandwidth, statistics),
        audit=audit.summary,
        flagged=count_flagged(audit.audit),
        sensitivity=audit.sensitivity,
        required_time=audit.required_time.assign(campaign=config.campaign.name),
        models=_models(runs, config, infos),
        drafts=drafts,
        suites=_suites(runs, config),
        campaign=_campaign(runs, config, machine),
    )
    campaigns = [analysis, *others]
    shared = {"required_time": required_times(campaigns)}
    if others:
        shared["compared_settings"] = views.compare_settings(campaigns)
        shared["compared_campaigns"] = views.compare_campaigns(campaigns)
    return Analysis(analysis.tables, **shared)


def setting_tables(pairs: pd.DataFrame, statistics: Statistics) -> dict[str, pd.DataFrame]:
    """Return the tables `settings` and `levels` of pairs, see `make_pairs`."""
    varied = pairs["forced_acceptance"].notna() | is_no_control(pairs)
    settings = usual(pairs), SETTING, statistics
    levels = pairs[pairs["level"].notna() & varied], [*SETTING, "level"], statistics
    return {
        "settings": summaries.summarise(*settings, summaries.describe_texts),
        "levels": summaries.summarise(*levels, lambda its: {"n_prompt": its["n_prompt"].iloc[0]}),
    }


def _beside_reported(
    settings: pd.DataFrame, infos: Mapping[str, ModelInfo], drafts: pd.DataFrame
) -> pd.DataFrame:
    """Return settings with the range of acceptance that others report of such models.

    `drafts` is that table. Added: reported_low, reported_high; null where nobody reports any.
    """
    method_of = drafts.set_index("draft")["method"].map(lambda types: methods_of(types)[0])
    found = []
    for row in records(settings):
        info, method = infos.get(row["target"]), method_of.get(row["draft"])
        known = info and method and pd.notna(row["gamma"])
        sizes = info and (info.parameters_total, info.parameters_active)
        found.append(
            (known and accepted_elsewhere(*sizes, method, row["gamma"])) or (np.nan, np.nan)
        )
    low, high = np.array(found, float).reshape(-1, 2).T
    return settings.assign(reported_low=low, reported_high=high)


def required_times(analyses: Iterable[Analysis]) -> pd.DataFrame:
    """Return the campaigns' own rows of `required_time`, one campaign after the other."""
    tables = [(analysis.name, analysis.required_time) for analysis in analyses]
    frames = [table[table["campaign"] == name] for name, table in tables]
    return pd.concat([frame for frame in frames if not frame.empty] or frames, ignore_index=True)


def list_drafts(runs: pd.DataFrame, label_of: Callable[[str], str]) -> pd.DataFrame:
    """Return the table `drafts` of the runs; `label_of` returns a model's label."""
    drafting = runs[runs["draft"] != NO_DRAFT]
    files = drafting.groupby(["method", "target"])["draft_model"].nunique(dropna=False)
    most = files.groupby("method").max()
    rows = []
    for row in drafting.drop_duplicates("draft").to_dict("records"):
        methods, file = methods_of(row["method"]), row["draft_model"]
        named = isinstance(file, str) and (Method.DRAFT in methods or most[row["method"]] > 1)
        file_label = label_of(file) if named else None
        known = {key: row[key] for key in ("draft", *PARAMETERS) if pd.notna(row.get(key))}
        label, drafter = (draft_label(methods, file_label, given) for given in (known, {}))
        rows.append((row["draft"], label, drafter, row["method"], file))
    return pd.DataFrame(rows, columns=["draft", "label", "drafter", "method", "draft_model"])


def _models(runs: pd.DataFrame, config: Config, infos: Mapping[str, ModelInfo]) -> pd.DataFrame:
    measured = {*runs["target"], *runs["draft_model"].dropna()}
    return pd.DataFrame(
        [
            {
                "model": name,
                "label": config.label(name),
                "family": "moe" if info.experts else "dense",
                **{key: getattr(info, key) for key in _OF_MODEL},
                "in_cache": info.size_bytes <= LIMITS.cache_bytes,
                "constructed": config.weights(name) != {"trained"},
                "network": config.network(name),
            }
            for name, info in infos.items()
            if name in measured
        ]
    )


def _suites(runs: pd.DataFrame, config: Config) -> pd.DataFrame:
    suites = config.selected_suites
    turns = dict.fromkeys(runs.loc[runs["turn"].notna(), "suite"], "turns")
    said = pd.DataFrame(
        [(name, its.title, next(iter(its.vary), turns.get(name))) for name, its in suites.items()],
        columns=["suite", "title", "factor"],
    )
    counted = runs.groupby("suite")["block"].agg(runs="size", blocks="nunique")
    return said.join(counted.reindex([*suites], fill_value=0), on="suite")


def _campaign(runs: pd.DataFrame, config: Config, machine: Mapping[str, Any]) -> pd.DataFrame:
    first, measured = runs.iloc[0], {*runs["target"], *runs["draft_model"]}
    study_names = config.campaign.compare_with_study.items()
    names = {name: model for name, model in study_names if model in measured}
    workloads, models = config.workloads.values(), config.measured_models
    sent = Counter(prompt.sent for workload in workloads for prompt in workload.prompts)
    entries = [config.models[name] for name in models]
    return pd.DataFrame(
        [
            {
                "campaign": config.campaign.name,
                "source": config.campaign.source,
                "is_study": not {*names.values()}.isdisjoint(runs["target"]),
                "study_names": json.dumps(names),
                # What n_prompt counts: the study's own rows have words, engines count tokens.
                "length_unit": "words" if config.campaign.source == "study_rows" else "tokens",
                "synthetic": all("random" in config.weights(name) for name in models),
                # A model of a family has the shape of the published one: its info was checked.
                "full_size": all(entry.kind == "synthetic" and entry.family for entry in entries),
                # A campaign may have several; the rows of each suite say which.
                **{
                    key: ", ".join(runs[key].unique())
                    for key in ("protocol", "engine", "engine_commit", "backend")
                },
                "engine_options": shlex.join(config.measurement.engine_args),
                "n_predict": first["n_predict"],
                "stops_at_end": bool(runs["stop"].eq(Stop.EOS).any()),
                "first_turns": sent["first turn"],
                "chats": sent["chat"],
                "temperature": config.measurement.temperature,
                "repeats": int(runs["repeat"].nunique()),
                "confidence": config.statistics.confidence,
                "started_at": runs["started_at"].min(),
                "ended_at": runs["started_at"].max(),
                "load_average_max": float(runs["load_average"].max()),
                "excluded": ", ".join(config.campaign.exclude),
                "excluded_runs": sum(block.runs for block in excluded_blocks(config)),
                "machines": runs["machine"].nunique(),
                **{f"machine_{key}": value for key, value in machine.items() if key != "machines"},
            }
        ]
    )
