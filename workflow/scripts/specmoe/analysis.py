"""Everything the paper's tables and figures are made of, computed once from rows and provenance."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import pandas as pd

from specmoe.block import PASSAGE_PREFIX
from specmoe.config import Config
from specmoe.statistics import (
    CELL,
    summarise_baselines,
    summarise_cells,
    unpaired_baselines,
    with_speedups,
)

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

    - baselines: one row per target, see `summarise_baselines`.
    - cells: one row per (suite, target, draft, gamma), see `summarise_cells`.
    - sweep: the same per prompt of exact length, with prompt and n_prompt.
    - models: one row per model that was measured: model, label, family (`moe` or `dense`),
      parameters_total, parameters_active, size_bytes, type, experts, experts_used, sha256.
    - suites: one row per suite: suite, title, runs, blocks, measured (rows with status ok).
    - campaign: what the campaign was, as one row of plain values.
    - audit, required_time: see `audit.summarise_audit` and `audit_physics.required_time`.
    - reported: what the published study prints beside what its rows give, see `reported.compare`;
      without rows for other campaigns.
    """

    baselines: pd.DataFrame
    cells: pd.DataFrame
    sweep: pd.DataFrame
    models: pd.DataFrame
    suites: pd.DataFrame
    campaign: pd.DataFrame
    audit: pd.DataFrame = field(default_factory=pd.DataFrame)
    required_time: pd.DataFrame = field(default_factory=pd.DataFrame)
    reported: pd.DataFrame = field(default_factory=pd.DataFrame)

    def write(self, folder: Path) -> None:
        """Write each table to `<folder>/<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for table in fields(self):
            getattr(self, table.name).to_parquet(folder / f"{table.name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote."""
        return cls(
            **{
                table.name: pd.read_parquet(folder / f"{table.name}.parquet")
                for table in fields(cls)
            }
        )


def analyse(
    runs: pd.DataFrame,
    config: Config,
    cards: Mapping[str, Mapping[str, Any]],
    host: Mapping[str, Any],
) -> Analysis:
    """Compute every table of a campaign.

    `runs` is `records.read_runs`'s frame, `cards` the model cards by model id, `host` the
    machine's description.
    """
    good = runs[runs["status"] == "ok"]
    compared = with_speedups(good)
    unpaired = unpaired_baselines(good)
    by_length = compared[compared["prompt"].str.startswith(PASSAGE_PREFIX)]
    lengths = [*CELL, "prompt", "n_prompt"]
    return Analysis(
        baselines=summarise_baselines(good),
        cells=summarise_cells(compared, unpaired, config.statistics),
        sweep=summarise_cells(by_length, unpaired, config.statistics, lengths),
        models=_models(runs, config, cards),
        suites=_suites(runs, config),
        campaign=_campaign(runs, config, host),
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
                "synthetic": all(
                    model.kind in ("synthetic", "quantize") for model in config.models.values()
                ),
                **{
                    key: first[key]
                    for key in ("protocol", "engine", "engine_commit", "backend", "n_predict")
                },
                "temperature": float(first["temperature"]),
                "repeats": config.measurement.repeats,
                "confidence": config.statistics.confidence,
                "started_at": runs["started_at"].min(),
                "ended_at": runs["started_at"].max(),
                "load_average_max": float(runs["load_average"].max()),
                **{f"host_{key}": value for key, value in host.items()},
            }
        ]
    )
