"""Everything the paper's tables and figures are made of, computed once from rows and provenance."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import pandas as pd

from specmoe.analysis import cost_tables
from specmoe.analysis.ceilings import ceilings
from specmoe.analysis.controls import Control, digests_of, with_controls
from specmoe.analysis.file_types import compare_types
from specmoe.analysis.spread import spread_of_cells
from specmoe.analysis.summaries import (
    CELL,
    summarise_baselines,
    summarise_cells,
    unpaired_baselines,
    with_intervals,
    with_speedups,
)
from specmoe.analysis.temperature import compare_temperatures
from specmoe.config.block import PASSAGE_PREFIX
from specmoe.config.schema import Config
from specmoe.config.study import is_of_study
from specmoe.errors import SchemaError
from specmoe.models.gguf import ModelCard
from specmoe.models.sizes import size_of_card

# What the analysis takes over from a model's card.
CARD_COLUMNS = (
    "parameters_total",
    "parameters_active",
    "size_bytes",
    "type",
    "experts",
    "experts_used",
    "sha256",
)


@dataclass(frozen=True)
class Analysis:
    """The tables of one campaign; nothing after this computes a number of its own.

    - baselines: one row per target, see `summarise_baselines` and `with_intervals`.
    - cells: one row per (suite, target, draft, gamma), see `summarise_cells`, with a column
      `control`, see `controls.with_controls`. Runs with imposed acceptance, suites of several
      temperatures and those at another than the campaign's have tables of their own.
    - sweep: the same per prompt of exact length, with prompt and n_prompt.
    - by_prompt: the same per text, with prompt and prompt_label.
    - temperatures: the same per temperature, see `temperature.compare_temperatures`.
    - types: cells of one network in files of several types, see `file_types.compare_types`.
    - models: one row per model that was measured: model, label, family (`moe` or `dense`),
      parameters_total, parameters_active, size_bytes, type, experts, experts_used, sha256.
    - suites: one row per suite: suite, title, runs, blocks, measured (rows with status ok).
    - campaign: what the campaign was, as one row of plain values; of_study: whether it is about the
      published study, see `study.is_of_study`.
    - spread: one row per cell, those of imposed acceptance and of other temperatures too, see
      `spread.spread_of_cells`.
    - advice, advice_settings: what to switch on, and what that was chosen from, see
      `advice.Advice`.
    - verification, round_costs, predictions, prediction_errors, break_even: what a round costs, by
      the runs of imposed acceptance, and what follows; see the functions of `cost_tables`. Without
      rows where no such runs were measured.
    - ceilings: the most that each cell's speedup could have been, see `ceilings.ceilings`.
    - audit: see `checks.summarise_audit`.
    - marked: see `checks.count_marked`.
    - claims: what the campaign says of the study's claims, see `judge.judge_claims`; like
      method_notes and comparison without rows for campaigns that are not about the study.
    - required_time: see `bounds.required_time`; with a column `campaign`, as it has the rows
      of the campaigns it is compared with too.
    - method_notes: see `method_notes.method_notes`.
    - side_by_side, compared_campaigns: what this campaign and others measured of the same settings,
      and what each ran on, see the functions of module `side_by_side`; without rows where the
      configuration names no campaign to compare with.
    - comparison: what the study prints beside what campaigns give, see
      `printed_numbers.compare_printed`.
    - reported: what the published study prints beside what its rows give, see
      `printed_numbers.compare`; without rows for other campaigns.
    """

    baselines: pd.DataFrame
    cells: pd.DataFrame
    sweep: pd.DataFrame
    models: pd.DataFrame
    suites: pd.DataFrame
    campaign: pd.DataFrame
    by_prompt: pd.DataFrame = field(default_factory=pd.DataFrame)
    temperatures: pd.DataFrame = field(default_factory=pd.DataFrame)
    types: pd.DataFrame = field(default_factory=pd.DataFrame)
    spread: pd.DataFrame = field(default_factory=pd.DataFrame)
    advice: pd.DataFrame = field(default_factory=pd.DataFrame)
    advice_settings: pd.DataFrame = field(default_factory=pd.DataFrame)
    verification: pd.DataFrame = field(default_factory=pd.DataFrame)
    round_costs: pd.DataFrame = field(default_factory=pd.DataFrame)
    predictions: pd.DataFrame = field(default_factory=pd.DataFrame)
    prediction_errors: pd.DataFrame = field(default_factory=pd.DataFrame)
    break_even: pd.DataFrame = field(default_factory=pd.DataFrame)
    ceilings: pd.DataFrame = field(default_factory=pd.DataFrame)
    audit: pd.DataFrame = field(default_factory=pd.DataFrame)
    marked: pd.DataFrame = field(default_factory=pd.DataFrame)
    required_time: pd.DataFrame = field(default_factory=pd.DataFrame)
    method_notes: pd.DataFrame = field(default_factory=pd.DataFrame)
    reported: pd.DataFrame = field(default_factory=pd.DataFrame)
    comparison: pd.DataFrame = field(default_factory=pd.DataFrame)
    side_by_side: pd.DataFrame = field(default_factory=pd.DataFrame)
    compared_campaigns: pd.DataFrame = field(default_factory=pd.DataFrame)
    claims: pd.DataFrame = field(default_factory=pd.DataFrame)

    def write(self, folder: Path) -> None:
        """Write each table to `<folder>/<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for table in fields(self):
            getattr(self, table.name).to_parquet(folder / f"{table.name}.parquet", index=False)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return str(self.campaign["campaign"].iloc[0])

    @property
    def of_study(self) -> bool:
        """Whether the campaign is about the published study, see `study.is_of_study`."""
        return bool(self.campaign["of_study"].iloc[0])

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote; raises SchemaError for an analysis that lacks a table."""
        tables = {table.name: folder / f"{table.name}.parquet" for table in fields(cls)}
        for path in tables.values():
            if not path.is_file():
                raise SchemaError(f"{path} is not there; render that campaign again")
        return cls(**{name: pd.read_parquet(path) for name, path in tables.items()})


def analyse(
    runs: pd.DataFrame,
    config: Config,
    cards: Mapping[str, Mapping[str, Any]],
    host: Mapping[str, Any],
) -> Analysis:
    """Compute every table of a campaign.

    `runs` is `schema.read_runs`'s frame, `cards` the model cards by model id, `host` the
    machine's description.
    """
    measured = runs[runs["status"] == "ok"]
    own = measured["imposed_acceptance"].isna()
    good = usual_runs(runs, config)
    compared = with_speedups(good)
    unpaired = unpaired_baselines(good)
    of_length = compared["prompt"].str.startswith(PASSAGE_PREFIX).astype(bool)

    def summarise(members: pd.DataFrame, *more: str) -> pd.DataFrame:
        cells = summarise_cells(members, unpaired, config.statistics, [*CELL, *more])
        return with_controls(cells, config.audit.unrelated_drafts, digests_of(cards))

    cells = summarise(compared)
    sizes = {model: size_of_card(ModelCard(**card)) for model, card in cards.items()}
    at_usual = measured[measured["temperature"] == config.measurement.temperature]
    fitted = cost_tables.fit_pairs(at_usual, config.statistics)
    kinds = with_controls(at_usual, config.audit.unrelated_drafts, digests_of(cards))
    no_controls = at_usual["imposed_acceptance"].notna() | (kinds["control"] == Control.NONE)
    predicted = cost_tables.predictions(fitted, at_usual[no_controls], config.statistics)
    return Analysis(
        baselines=with_intervals(summarise_baselines(good), good, config.statistics),
        cells=cells,
        sweep=summarise(compared[of_length], "prompt", "n_prompt"),
        by_prompt=_with_prompt_labels(summarise(compared[~of_length], "prompt"), config),
        spread=spread_of_cells(with_speedups(measured), config.statistics),
        temperatures=compare_temperatures(measured[own], config.statistics),
        types=_types(cells, compared, config, cards),
        verification=cost_tables.verification(
            fitted,
            sizes,
            host["memory_bandwidth_bytes_per_second"],
            config.audit.cache_bytes,
        ),
        round_costs=cost_tables.round_costs(fitted),
        predictions=predicted,
        prediction_errors=cost_tables.prediction_errors(predicted),
        break_even=cost_tables.break_even(fitted, predicted),
        ceilings=ceilings(compared, good, sizes, config.audit),
        models=_models(runs, config, cards),
        suites=_suites(runs, config),
        campaign=_campaign(runs, config, host),
    )


def usual_runs(runs: pd.DataFrame, config: Config) -> pd.DataFrame:
    """Return the measured runs of what a draft does by itself at the campaign's temperature.

    The rest, and suites of several temperatures as a whole, have tables of their own.
    """
    measured = runs[runs["status"] == "ok"]
    own = measured["imposed_acceptance"].isna()
    one = measured.groupby("suite")["temperature"].transform("nunique").eq(1)
    return measured[own & one & measured["temperature"].eq(config.measurement.temperature)]


def required_times(analyses: Iterable[Analysis]) -> pd.DataFrame:
    """Return each campaign's own rows of `required_time`, one campaign after the other."""
    frames = [one.required_time[one.required_time["campaign"] == one.name] for one in analyses]
    return pd.concat([frame for frame in frames if not frame.empty] or frames, ignore_index=True)


def _with_prompt_labels(cells: pd.DataFrame, config: Config) -> pd.DataFrame:
    return (
        cells
        if cells.empty
        else cells.assign(prompt_label=cells["prompt"].map(config.prompt_label))
    )


def _models(
    runs: pd.DataFrame, config: Config, cards: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    measured = {*runs["target"], *runs["draft"]}
    return pd.DataFrame(
        [
            {
                "model": name,
                "label": config.label(name),
                "family": "moe" if card["experts"] else "dense",
                **{column: card[column] for column in CARD_COLUMNS},
            }
            for name, card in cards.items()
            if name in measured
        ]
    )


def _types(
    cells: pd.DataFrame,
    compared: pd.DataFrame,
    config: Config,
    cards: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    sizes = {model: size_of_card(ModelCard(**card)) for model, card in cards.items()}
    return compare_types(
        cells if cells.empty else cells[cells["control"] == Control.NONE],
        compared,
        {
            model: config.label(network) if network in config.models else network
            for model in cards
            for network in [config.network(model)]
        },
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
                "measured": int((members["status"] == "ok").sum()),
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
                "of_study": is_of_study(runs["target"]),
                # What n_prompt counts: the study's own rows have words, engines count tokens.
                "length_unit": "words" if config.campaign.source == "published" else "tokens",
                "synthetic": all(map(config.is_synthetic, config.measured_models)),
                # A model of a family has the shape of the published one: its card was checked.
                "true_shape": all(
                    model.kind == "synthetic" and model.family for model in config.models.values()
                ),
                # Of more than one, all are named; their suites tell them apart.
                **{
                    key: ", ".join(runs[key].unique())
                    for key in ("protocol", "engine", "engine_commit", "backend")
                },
                "n_predict": first["n_predict"],
                "temperature": config.measurement.temperature,
                "repeats": config.measurement.repeats,
                "confidence": config.statistics.confidence,
                "precision": config.statistics.precision,
                "itself_acceptance": config.audit.self_acceptance,
                "unrelated_acceptance": config.audit.unrelated_acceptance,
                "started_at": runs["started_at"].min(),
                "ended_at": runs["started_at"].max(),
                "load_average_max": float(runs["load_average"].max()),
                **{f"host_{key}": value for key, value in host.items()},
            }
        ]
    )
